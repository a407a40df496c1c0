import { execFileSync } from "node:child_process";
import { closeSync, mkdirSync, openSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";
import { onTestFinished } from "vitest";

/** A disk of 16 MiB. */
export interface SmallDisk {
  /** Fills it to the last byte. */
  fill(): void;
  /** Frees that space. */
  empty(): void;
}

/** Mounts a small disk for the duration of the test. `undefined`: this process must not mount one. */
export function smallDisk(folder: string): SmallDisk | undefined {
  mkdirSync(folder);
  try {
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=16m,mode=755", "tmpfs", folder], { stdio: "ignore" });
  } catch {
    return undefined;
  }
  onTestFinished(() => void execFileSync("umount", ["--lazy", folder]));
  const file = join(folder, "others");
  return {
    fill() {
      const descriptor = openSync(file, "w");
      try {
        for (let size = 1 << 16; size > 0;) {
          try {
            writeSync(descriptor, Buffer.alloc(size));
          } catch (thrown) {
            if ((thrown as { code?: string }).code !== "ENOSPC") throw thrown;
            size >>= 1;
          }
        }
      } finally {
        closeSync(descriptor);
      }
    },
    empty: () => rmSync(file),
  };
}
