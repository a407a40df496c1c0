#!/usr/bin/env node
import process from "node:process";
import { processIo } from "./io.ts";
import { run } from "./run.ts";

// `parley watch … | head` closes the pipe: that is the reader's wish, not an error.
process.stdout.on("error", (error: NodeJS.ErrnoException) => process.exit(error.code === "EPIPE" ? 0 : 1));
// What is told beside the work is no reason to end it: a server goes on when nobody reads its log.
process.stderr.on("error", () => {});

const code = await run(process.argv.slice(2), processIo());
// Where pipes are written asynchronously they are emptied first; then sockets that are still open are dropped.
await new Promise<void>((resolve) => process.stdout.write("", () => resolve()));
await new Promise<void>((resolve) => process.stderr.write("", () => resolve()));
process.exit(code);
