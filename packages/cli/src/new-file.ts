import { createWriteStream } from "node:fs";
import { rm } from "node:fs/promises";
import { once } from "node:events";
import { resolve } from "node:path";
import { finished } from "node:stream/promises";
import { CommandError } from "./errors.ts";
import { fileReason } from "./files.ts";
import type { Io } from "./io.ts";

/**
 * Writes a file that must not exist, and that only the user may read. Half of it is none, and would be in the way of the next one: it is
 * removed where something fails or the user interrupts. `false`: the user did.
 */
export async function writeNewFile(io: Io, out: string, pieces: AsyncIterable<string>): Promise<boolean> {
  const path = resolve(io.cwd, out);
  const file = createWriteStream(path, { flags: "wx", mode: 0o600 });
  const written = finished(file);
  // It may fail while the first page is read. That is thrown below.
  written.catch(() => undefined);
  let [isOwn, isInterrupted] = [false, false];
  const release = io.onInterrupt(() => (isInterrupted = true));
  try {
    await once(file, "open");
    isOwn = true;
    for await (const piece of pieces) {
      if (isInterrupted) break;
      if (!file.write(piece)) await Promise.race([once(file, "drain"), written]);
    }
    file.end();
    await written;
    if (isInterrupted) await rm(path, { force: true });
    return !isInterrupted;
  } catch (cause) {
    file.destroy();
    await written.catch(() => undefined);
    if (isOwn) await rm(path, { force: true });
    throw new CommandError(`cannot write ${out}: ${fileReason(cause)}`, { cause });
  } finally {
    release();
  }
}
