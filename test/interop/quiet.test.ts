import { defineAgent, memoryStore, serve, text, type Server } from "@parley/node";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { quietV03, quietV1 } from "./official.ts";
import { describePeer, runClient, type PeerProgram, type Said } from "./peer.ts";
import type { BindingName, Version } from "./steps.ts";

/**
 * A task that is silent for a minute, like one whose agent waits for a person. Every SDK reads it with two streams, that of its message
 * and a subscription, and must get the end on both. All SDKs wait in parallel.
 */

/** Number of keep-alives to wait for. By default we send one every 15 seconds. */
const keepAlives = 4;

interface Reader {
  readonly name: string;
  readonly version: Version;
  readonly binding: BindingName;
  /** Whether its SDK supports `final`. */
  readonly old: boolean;
  /** Its program, if it runs in a separate process. */
  readonly program?: PeerProgram;
  read(url: string, listening: () => void): Promise<unknown>;
}

const all: readonly BindingName[] = ["JSONRPC", "HTTP+JSON", "GRPC"];
const withoutRest: readonly BindingName[] = ["JSONRPC", "GRPC"];

function programs(program: PeerProgram, version: Version, bindings: readonly BindingName[], old = false): Reader[] {
  return bindings.map((binding) => ({
    name: program.name,
    version,
    binding,
    old,
    program,
    async read(url, listening) {
      const heard = ({ step }: Said): void => {
        if (step === "listening") listening();
      };
      const { step: _, ...said } =
        (await runClient(program, [url, binding, version, "quiet"], { heard })).get("quiet") ?? {};
      return said;
    },
  }));
}

const python1: PeerProgram = { name: "Python SDK 1.3.0", environment: "python1", program: "client_v1.py" };
const python03: PeerProgram = { name: "Python SDK 0.3.26", environment: "python03", program: "client_v03.py" };
const go2: PeerProgram = { name: "Go SDK 2.3.1", environment: "go", program: "client-v2" };
const go03: PeerProgram = { name: "Go SDK 0.3.15", environment: "go", program: "client-v03" };

const readers: readonly Reader[] = [
  ...programs(python1, "1.0", all),
  ...programs(python1, "0.3", all),
  ...programs(python03, "0.3", all, true),
  ...programs(go2, "1.0", all),
  ...programs(go2, "0.3", withoutRest),
  ...programs(go03, "0.3", withoutRest, true),
  ...all.map((binding): Reader => ({
    name: "JavaScript SDK 1.3.0",
    version: "1.0",
    binding,
    old: false,
    read: async (url, listening) => ({ result: await quietV1(url, binding, listening) }),
  })),
  ...all.map((binding): Reader => ({
    name: "JavaScript SDK 0.3.14",
    version: "0.3",
    binding,
    old: true,
    read: async (url, listening) => ({ result: await quietV03(url, binding, listening) }),
  })),
];

let end = (): void => {};
const ended = new Promise<void>((resolve) => (end = resolve));
const agent = defineAgent({
  name: "Quiet",
  description: "Is silent for a while",
  version: "1.0.0",
  skills: [],
  mayReplyDirectly: false,
  async *onMessage(turn) {
    yield turn.working();
    await ended;
    yield turn.artifact({ parts: [text("at last")] });
  },
});

/** Resolves after `count` comments on the stream of another task. */
async function comments(url: string, count: number): Promise<void> {
  const message = { messageId: crypto.randomUUID(), role: "ROLE_USER", parts: [{ text: "quiet" }] };
  const response = await fetch(`${url}/message:stream`, {
    method: "POST",
    headers: { "content-type": "application/json", "a2a-version": "1.0" },
    body: JSON.stringify({ message }),
  });
  let seen = "";
  for await (const chunk of response.body ?? []) {
    seen += Buffer.from(chunk as Uint8Array).toString();
    const [, quiet = ""] = seen.split("TASK_STATE_WORKING");
    if (quiet.split(/^:/m).length > count) return;
  }
  throw new Error(`The stream ended with ${seen}`);
}

let server: Server;
const outcomes = new Map<Reader, Promise<unknown>>();
beforeAll(async () => {
  server = await serve(agent, { port: 0, grpc: true, signals: false, store: memoryStore() });
  const listening = readers.map(
    (reader) =>
      new Promise<void>((resolve) => {
        const outcome = reader.read(server.url, resolve);
        // A failing reader must not block the others.
        outcome.then(
          () => resolve(),
          () => resolve(),
        );
        outcomes.set(reader, outcome);
      }),
  );
  await Promise.all(listening);
  await comments(server.url, keepAlives);
  end();
  await Promise.allSettled(outcomes.values());
}, 400_000);
afterAll(() => server.close({ grace: 0 }));

describe("a stream that is silent for a minute", () => {
  for (const reader of readers) {
    const { name, version, binding, old, program } = reader;
    const test = (): void =>
      it(`is read to the end by the ${name}, over ${version}, ${binding}`, async () => {
        const rest = ["artifact at last", `status COMPLETED${old ? ", final" : ""}`];
        expect(await outcomes.get(reader)).toEqual({ result: { first: "task WORKING", rest, other: rest } });
      });
    if (program === undefined) test();
    else describePeer(program, test);
  }
});
