import { mkdtempSync, rmSync, statfsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { atLength } from "./counts.ts";

const memory = "/dev/shm";
/** Far more than all tests need at one time. */
const needed = 2 ** 30;
/** Tells the test processes where to keep files on the disk. */
const onDisk = "PARLEY_TESTS_DISK";

/**
 * Keeps temporary test files in memory if the system has a folder for this, because database tests would otherwise mostly wait
 * for the disk at each commit. Tests use `diskFolder` for files that must be on the disk.
 */
export function useFastFolder(): void {
  if (process.env["TMPDIR"] !== undefined || !hasRoom()) return;
  process.env[onDisk] = tmpdir();
  const folder = mkdtempSync(join(memory, "parley-tests-"));
  // Inherited by the processes that run the tests, and by those that they start.
  process.env["TMPDIR"] = folder;
  process.on("exit", () => rmSync(folder, { recursive: true, force: true, maxRetries: 3 }));
}

/**
 * The folder of tests about crashes and durability, and of very large files. In `.ci/run` and `npm run test:long` it is on the disk, and every
 * commit is synced. In `npm test` it is in memory: a disk would not reveal more in kills, because the operating system keeps what a
 * process has written.
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
