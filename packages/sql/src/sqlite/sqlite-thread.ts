import { parentPort, workerData } from "node:worker_threads";
import { sqliteCode } from "./busy.ts";
import { loadDriver, type OpenDriver } from "./drivers/load.ts";
import { checkFiles, type Identity } from "./files.ts";
import { pass } from "./gate.ts";
import { openDriver } from "./open.ts";
import type { Answer, Request, ThreadData } from "./thread-writer.ts";
import { driverWriter, type Writer } from "./writer.ts";

/** The thread that writes: `threadWriter` starts it. It answers in the order in which it is asked. */

// Node 22 warns that its SQLite is experimental; the thread that asks has said so already.
process.removeAllListeners("warning");

const { gate, options } = workerData as ThreadData;
const guard = <T>(body: () => T): T => pass(gate, body);
const asked: Request[] = [];
let writer: Writer | undefined;
let identity: Identity | undefined;

parentPort?.on("message", (request: Request) => {
  asked.push(request);
  if (asked.length === 1) void work();
});

async function work(): Promise<void> {
  for (let request = asked[0]; request !== undefined; request = asked[0]) {
    parentPort?.postMessage(await answer(request));
    asked.shift();
    // Nothing is under way and nothing will come: the thread ends by itself.
    if (request.call === "close") parentPort?.close();
  }
}

async function answer(request: Request): Promise<Answer> {
  try {
    return { value: await call(request) };
  } catch (error) {
    const code = sqliteCode(error);
    return code === undefined ? { error } : { failure: { message: (error as Error).message, code } };
  }
}

async function call(request: Request): Promise<unknown> {
  if (request.call === "close") return writer?.close();
  if (request.call === "keepTo") {
    [identity] = request.input;
    return undefined;
  }
  // Not opened before it is asked for something: only then the tables are there.
  writer ??= openWriter(await loadDriver(options.driver));

  switch (request.call) {
    case "append":
      return writer.append(...request.input);
    case "sweep":
      return writer.sweep(...request.input);
    case "moved":
      return writer.moved();
  }
}

function openWriter(open: OpenDriver): Writer {
  const driver = guard(() => {
    // Opening files that are gone would make new ones.
    if (identity !== undefined) checkFiles(identity);
    return openDriver(open, options);
  });
  return driverWriter(driver, { busyTimeout: options.busyTimeout, guard, ...(identity && { identity }) });
}
