#!/usr/bin/env node
import process from "node:process";
import { processIo } from "./io.ts";
import { run } from "./program.ts";

// `parley watch … | head` closes the pipe when it has read enough: that is no error.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code === "EPIPE") process.exit(0);
  process.stderr.write(
    `parley: cannot write to standard output: ${error.code === "ENOSPC" ? "the disk is full" : error.message}\n`,
  );
  process.exit(1);
});
// A server goes on when nobody reads its log any more.
process.stderr.on("error", () => {});

const code = await run(process.argv.slice(2), processIo());
// Pipes may be written asynchronously: wait until they are empty, then end the process with whatever sockets are open.
await new Promise<void>((resolve) => process.stdout.write("", () => resolve()));
await new Promise<void>((resolve) => process.stderr.write("", () => resolve()));
process.exit(code);
