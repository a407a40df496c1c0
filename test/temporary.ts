import { mkdtempSync, rmSync, statfsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { atLength } from "./counts.ts";

const memory = "/dev/shm";
/** Far more than all tests keep at one time. */
const needed = 2 ** 30;
/** Tells the processes of the tests where temporary files are on the disk. */
const onDisk = "PARLEY_TESTS_DISK";

/**
 * Puts the temporary files of the tests into memory, where the system has a folder for that: to wait for a disk at each
 * commit is most of what the tests of a database would do. What a test has to have on a disk it keeps in `diskFolder`.
 */
export function useFastFolder(): void {
  if (process.env["TMPDIR"] !== undefined || !hasRoom()) return;
  process.env[onDisk] = tmpdir();
  const folder = mkdtempSync(join(memory, "parley-tests-"));
  // The processes that run the tests, and those that they start, take it over.
  process.env["TMPDIR"] = folder;
  process.on("exit", () => rmSync(folder, { recursive: true, force: true, maxRetries: 3 }));
}

/**
 * The folder of tests about crashes and durability, and of very large files. `.ci/run` and `npm run test:long` have it on the disk, so
 * that every commit is synced. `npm test` has it in memory: kills show nothing more on a disk, since what a process has
 * written stays with the system.
 */
export function diskFolder(): string {
  return (atLength ? process.env[onDisk] : undefined) ?? tmpdir();
}

/** A folder like `tmpdir()` that other users may enter: some programs refuse to run as root. */
export function sharedFolder(): string {
  return process.env[onDisk] === undefined ? tmpdir() : memory;
}

function hasRoom(): boolean {
  try {
    const { bavail, bsize } = statfsSync(memory);
    return bavail * bsize >= needed;
  } catch {
    return false;
  }
}
