// Prints what an event of a stream costs the connection: writes of a socket over HTTP/1.1, frames and bytes over HTTP/2.

import { subscribe } from "node:diagnostics_channel";
import { PerformanceObserver } from "node:perf_hooks";
import { connect, defineAgent, memoryStore, serve } from "@parley/node";

let writes = 0;
subscribe("net.server.socket", (message) => {
  const { _handle: handle } = /** @type {{ socket: { _handle: Record<string, (...given: unknown[]) => unknown> } }} */ (
    message
  ).socket;
  for (const name of [
    "writeBuffer",
    "writeUtf8String",
    "writeLatin1String",
    "writeAsciiString",
    "writeUcs2String",
    "writev",
  ]) {
    const write = handle[name];
    if (write === undefined) throw new Error(`A socket has no ${name} here`);
    handle[name] = (...given) => {
      writes += 1;
      return write.apply(handle, given);
    };
  }
});

/** The next event is made once the previous one has arrived, so none travels with another. */
let came = () => {};
const next = () => new Promise((resolve) => (came = () => resolve(undefined)));
const agent = defineAgent({
  name: "Counted",
  description: "Streams",
  version: "1.0.0",
  skills: [],
  async *onMessage(turn) {
    yield { kind: "artifact", artifact: { artifactId: "a", parts: [{ text: "0" }] } };
    for (let n = 1; n < Number(turn.text); n += 1) {
      await next();
      yield turn.append("a", [{ text: "and so the tale runs on" }]);
    }
    await next();
  },
});

/**
 * What a stream of so many chunks costs its server.
 * @param {string} binding @param {number} chunks
 */
async function costOf(binding, chunks) {
  /** @type {{ framesSent: number, bytesWritten: number } | undefined} */
  let session;
  const observer = new PerformanceObserver((list) => {
    for (const { name, detail } of /** @type {any[]} */ (list.getEntries())) {
      if (name === "Http2Session" && detail.type === "server") session = detail;
    }
  });
  observer.observe({ entryTypes: ["http2"] });
  // Without keep-alive comments: on a busy machine one would be due while the stream is open.
  const server = await serve(agent, {
    port: 0,
    grpc: true,
    store: memoryStore(),
    signals: false,
    keepAlive: 3_600_000,
  });
  const client = await connect(server.url, { binding });
  const cost = { writes: 0, frames: 0, bytes: 0 };
  let first = true;
  for await (const { artifactUpdate } of client.sendStreamingMessage(String(chunks))) {
    if (!artifactUpdate) continue;
    // The first one may share a write with what is before it.
    if (first) writes = 0;
    first = false;
    cost.writes = writes;
    came();
  }
  await server.close();
  // Entries are reported in a separate turn of the event loop.
  for (let turn = 0; turn < 10; turn += 1) await new Promise((resolve) => setImmediate(resolve));
  observer.disconnect();
  if (session !== undefined) Object.assign(cost, { frames: session.framesSent, bytes: session.bytesWritten });
  return cost;
}

const sse = await costOf("JSONRPC", 101);
const grpc = [await costOf("GRPC", 1), await costOf("GRPC", 101)];
const event = (/** @type {number} */ few = 0, many = 0) => (many - few) / 100;
process.stdout.write(
  JSON.stringify({
    "writes of SSE event": event(0, sse.writes),
    "frames of gRPC event": event(grpc[0]?.frames, grpc[1]?.frames),
    "bytes of gRPC event": event(grpc[0]?.bytes, grpc[1]?.bytes),
  }),
);
