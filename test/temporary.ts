import { mkdtempSync, rmSync, statfsSync } from "node:fs";
import { join } from "node:path";
import { inFull } from "./counts.ts";

const memory = "/dev/shm";
/** Far more than all tests keep at one time. */
const needed = 2 ** 30;

/**
 * Puts the temporary files of the tests into memory, where the system has a folder for that: to wait for a disk at each
 * commit is most of what the tests of a database do, and kills show nothing more on a disk, since what a process has
 * written stays with the system. `npm run test:long` uses the disk.
 */
export function useFastFolder(): void {
  if (inFull || process.env["TMPDIR"] !== undefined || !hasRoom()) return;
  const folder = mkdtempSync(join(memory, "parley-tests-"));
  // The processes that run the tests, and those that they start, take it over.
  process.env["TMPDIR"] = folder;
  process.on("exit", () => rmSync(folder, { recursive: true, force: true, maxRetries: 3 }));
}

function hasRoom(): boolean {
  try {
    const { bavail, bsize } = statfsSync(memory);
    return bavail * bsize >= needed;
  } catch {
    return false;
  }
}
