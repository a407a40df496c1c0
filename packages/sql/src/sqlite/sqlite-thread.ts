import { parentPort, workerData } from "node:worker_threads";
import { sqliteCode } from "./driver.ts";
import { loadDriver, openConnection, type OpenDriver } from "./libraries.ts";
import { checkFiles, type Identity } from "./files.ts";
import { pass, type Answer, type Request, type ThreadData } from "./thread-writer.ts";
import { driverWriter, type Writer } from "./writer.ts";

// The thread that `threadWriter` starts. It answers requests in their order.

// Node 22 warns that its SQLite is experimental. The main thread has already printed this warning.
process.removeAllListeners("warning");

const { gate, options } = workerData as ThreadData;
const guard = <T>(body: () => T): T => pass(gate, body);
const requests: Request[] = [];
let writer: Writer | undefined;
let identity: Identity | undefined;

parentPort?.on("message", (request: Request) => {
  requests.push(request);
  if (requests.length === 1) void work();
});

async function work(): Promise<void> {
  for (let request = requests[0]; request !== undefined; request = requests[0]) {
    parentPort?.postMessage(await answer(request));
    requests.shift();
    // Without an open port, the thread ends.
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
  // The first call that needs the writer opens it, because the tables do not exist earlier.
  writer ??= await openWriter(await loadDriver(options.driver));
  const method = writer[request.call] as (...input: readonly unknown[]) => Promise<unknown>;
  return method(...request.input);
}

async function openWriter(open: OpenDriver): Promise<Writer> {
  const check = (): void => {
    if (identity !== undefined) checkFiles(identity);
  };
  const driver = await openConnection(open, options, (body) =>
    guard(() => {
      // Opening missing files would create them.
      check();
      return body();
    }),
  );
  return driverWriter(driver, { busyTimeout: options.busyTimeout, guard, check });
}
