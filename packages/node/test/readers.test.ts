import { connect as connectHttp2 } from "node:http2";
import { defineAgent, memoryStore } from "@parley/server";
import { connect } from "@parley/a2a";
import { frameOf } from "../../grpc/src/frames.ts";
import { encode } from "../../grpc/src/protobuf/encode.ts";
import { serviceV1 } from "../../grpc/src/services.ts";
import { expect, it, vi } from "vitest";
import { liveMemory } from "../../../test/heap.ts";
import { serve } from "../src/index.ts";

/** Tests that each stalled reader of a long log holds one page, however large the log's records are. */

function held(): number {
  const { heapUsed, arrayBuffers } = liveMemory();
  return heapUsed + arrayBuffers;
}

const mib = 1024 * 1024;
const readers = 40;
const subscribe = serviceV1().operations.get("SubscribeToTask")!;

/** An agent that writes a log of 6 MiB in 20 records, and then asks a question, so that its streams stay open. */
const talkative = defineAgent({
  name: "Talkative",
  description: "Says much.",
  version: "1.0.0",
  skills: [],
  mayReplyDirectly: false,
  async *onMessage(turn) {
    for (let at = 0; at < 20; at++) {
      yield turn.artifact({ artifactId: `a${at}`, parts: [{ text: "x".repeat(0.3 * mib) }] });
    }
    yield turn.inputRequired("More?");
  },
});

type Leave = () => void;

const ways: Readonly<Record<string, (port: number, id: string, answered: () => void) => Leave>> = {
  "gRPC at window 0": (port, id, answered) => {
    const session = connectHttp2(`http://127.0.0.1:${port}`, { settings: { initialWindowSize: 0 } });
    session.on("error", () => {});
    session.once("remoteSettings", () => {
      for (let count = 0; count < readers; count++) {
        const head = { ":method": "POST", ":path": subscribe.path, "content-type": "application/grpc", te: "trailers" };
        const stream = session.request({ ...head, "last-event-id": "1" });
        stream.on("error", () => {}).on("response", answered);
        stream.end(frameOf(encode(subscribe.input, { id })));
      }
    });
    return () => session.destroy();
  },
};

it.each(Object.keys(ways))("40 readers who do not read hold a page each: %s", async (way) => {
  const server = await serve(talkative, { port: 0, grpc: true, signals: false, store: memoryStore(), logger: false });
  try {
    const { task } = await (await connect(server.url)).sendMessage("go");
    const before = held();
    let answers = 0;
    const leave = ways[way]!(server.port, task!.id, () => answers++);
    await vi.waitFor(() => expect(answers).toBe(readers), 10_000);
    // The runtime may need another garbage collection to free unused memory.
    await vi.waitFor(() => expect(held() - before).toBeLessThan(readers * 1.5 * mib), 10_000);
    leave();
  } finally {
    await server.close({ grace: 0 });
  }
});
