import { createWriteStream } from "node:fs";
import { readFile, rm } from "node:fs/promises";
import { once } from "node:events";
import { resolve } from "node:path";
import { text } from "node:stream/consumers";
import { finished } from "node:stream/promises";
import { codeOf, CommandError, UsageError } from "./errors.ts";
import type { Io } from "./io.ts";

/** Explains to the user why a file cannot be used. */
export function fileReason(error: unknown): string {
  switch (codeOf(error)) {
    case "ENOENT":
      return "no such file";
    case "EISDIR":
      return "is a folder";
    case "EACCES":
    case "EPERM":
      return "permission denied";
    case "ENOSPC":
      return "the disk is full";
    case "ENOTDIR":
    case "EEXIST":
      return "a file with that name exists";
    default:
      return error instanceof Error ? error.message : String(error);
  }
}

/** Reads a file that the user named. Throws UsageError, with `hint` at its end. */
export async function readBytes(file: string, cwd: string, hint = ""): Promise<Buffer> {
  try {
    return await readFile(resolve(cwd, file));
  } catch (cause) {
    throw new UsageError(`cannot read ${file}: ${fileReason(cause)}${hint}`, { cause });
  }
}

/** All of standard input as text. */
export function readAll(stdin: Io["stdin"]): Promise<string> {
  return text(stdin);
}

/** Asks the user. Throws UsageError if there is no answer. */
export async function answerTo(io: Io, question: string, hidden: boolean): Promise<string> {
  const text = (await io.ask(question, { hidden }))?.replace(/\r$/, "");
  if (text === undefined || text === "") throw new UsageError(`no answer to "${question.replace(/: $/, "")}"`);
  return text;
}

export async function jsonOf(file: string, cwd: string): Promise<object> {
  const text = (await readBytes(file, cwd)).toString("utf8");
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null) return value;
  } catch {
    // The error of JSON.parse() would show the content of the file, which may be a key.
  }
  throw new UsageError(`${file} is not JSON`);
}

/**
 * Writes a new file that only the user can read. If writing fails, or the user interrupts it, the file is removed.
 *
 * @returns false if the user interrupted.
 */
export async function writeNewFile(io: Io, out: string, pieces: AsyncIterable<string>): Promise<boolean> {
  const path = resolve(io.cwd, out);
  const file = createWriteStream(path, { flags: "wx", mode: 0o600 });
  const written = finished(file);
  // A failure while the first page is read is thrown below.
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
