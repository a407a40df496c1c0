#!/usr/bin/env node
import process from "node:process";
import { processIo } from "./io.ts";
import { run } from "./program.ts";

// `parley watch … | head` closes the pipe early, which is not an error.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code === "EPIPE") process.exit(0);
  process.stderr.write(
    `parley: cannot write to standard output: ${error.code === "ENOSPC" ? "the disk is full" : error.message}\n`,
  );
  process.exit(1);
});
// A server must continue to run if its log reader ends.
process.stderr.on("error", () => {});

const code = await run(process.argv.slice(2), processIo());
// Pipes can be asynchronous: flush them, then exit even if sockets are open.
await new Promise<void>((resolve) => process.stdout.write("", () => resolve()));
await new Promise<void>((resolve) => process.stderr.write("", () => resolve()));
process.exit(code);
