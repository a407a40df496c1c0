import { auditLog, defineAgent, silentLogger, text, anonymous, type Interceptor } from "@parley/server";
import type { Client, ConnectOptions, StreamResponse } from "@parley/a2a";
import { bearer } from "@parley/a2a/auth";
import { message } from "@parley/a2a/model";
import type { CallContext } from "@parley/a2a/protocol";
import { connect, serve, type ServeOptions, type Server } from "@parley/node";
import { afterAll, beforeAll, expect } from "vitest";
import { transparent } from "./interceptors.ts";
import { placeOf, stores, type StoreName } from "./stores.ts";

/* The common setup of the tests: one agent, its stores, and its bindings. */

/** The servers behind the bindings. */
export const services: readonly Kind[] = [
  ...stores,
  ...(stores.includes("memory") ? (["memory, behind interceptors"] as const) : []),
];

type Kind = StoreName | "memory, behind interceptors";

export interface Interface {
  readonly binding: "JSONRPC" | "HTTP+JSON" | "GRPC";
  readonly version: "1.0" | "1.1" | "0.3";
}

export const interfaces: readonly Interface[] = [
  { binding: "JSONRPC", version: "1.0" },
  { binding: "HTTP+JSON", version: "1.0" },
  { binding: "GRPC", version: "1.0" },
  { binding: "JSONRPC", version: "1.1" },
  { binding: "HTTP+JSON", version: "1.1" },
  { binding: "GRPC", version: "1.1" },
  { binding: "JSONRPC", version: "0.3" },
  { binding: "HTTP+JSON", version: "0.3" },
  { binding: "GRPC", version: "0.3" },
];

/** An extension that the agent declares. */
export const extension = "https://example.com/extensions/behaviour";

const agent = defineAgent({
  name: "Behaviour",
  description: "Does what its message says",
  version: "1.0.0",
  skills: [],
  defaultInputModes: ["*/*"],
  capabilities: { extensions: [{ uri: extension }] },
  async *onMessage(turn) {
    const [what, count = "3"] = turn.text.split(" ");
    if (what === "hello") return turn.reply("Hello");
    if (what === "throw") throw new Error("the connection string is secret");
    if (what === "ask") return yield turn.inputRequired("Which one?");
    yield turn.working("begun");
    yield turn.artifact({ artifactId: "a", parts: [text("0")], open: true });
    for (let n = 1; n < Number(count); n += 1) yield turn.append("a", [text(String(n))]);
    if (what === "wait") await new Promise((resolve) => turn.signal.addEventListener("abort", resolve));
    return undefined;
  },
});

const authenticator = bearer({ "ada-token": { subject: "ada" }, "bob-token": { subject: "bob" } });

export function as(name: "ada" | "bob"): ConnectOptions {
  return { headers: { Authorization: `Bearer ${name}-token` } };
}

/** Serves the agent during the tests of the current block. Returns a function that returns the URL. */
export function serving(kind: Kind, more: Partial<ServeOptions> = {}): () => string {
  let server: Server;
  let stop: (() => Promise<void>) | undefined;
  beforeAll(async () => {
    const isBehind = kind === "memory, behind interceptors";
    const place = await placeOf(isBehind ? "memory" : kind);
    const store = await place.open();
    const interceptors = isBehind ? transparent() : [];
    const options = {
      port: 0,
      grpc: true,
      signals: false,
      store,
      authenticator,
      interceptors,
      logger: silentLogger,
      audit: auditLog(silentLogger),
      ...more,
    };
    server = await serve(agent, options);
    stop = async () => {
      await server.close({ grace: 0 });
      await store.close();
      await place.remove();
    };
  });
  afterAll(() => stop?.());
  return () => server.url;
}

export async function events(stream: AsyncIterable<StreamResponse>): Promise<StreamResponse[]> {
  const all: StreamResponse[] = [];
  for await (const event of stream) all.push(event);
  return all;
}

/** The clients of one interface of the agent. */
export interface Reach {
  /** Ada's client. */
  readonly client: Client;
  /** The context for calls to the service below the client. */
  readonly context: CallContext;
  open(options?: ConnectOptions): Promise<Client>;
  /** Creates a client of Ada. `told`: the outcome of each stream that the client opened, "opened" or an error code. */
  spied(): Promise<{ readonly client: Client; readonly told: readonly unknown[] }>;
  /** Subscribes to a task that asks for input, makes the task ask again, and then cancels it. */
  askedTwice(): Promise<{ readonly states: readonly unknown[]; readonly told: readonly unknown[] }>;
}

/** Creates the clients of one interface, which are available once the tests run. */
export function reach(url: () => string, { binding, version }: Interface): Reach {
  let client: Client | undefined;
  beforeAll(async () => {
    client = await at.open();
  });
  const at: Reach = {
    get client() {
      return client ?? expect.fail("Nothing is connected yet");
    },
    context: { principal: anonymous, version, extensions: [] },
    open: (options = as("ada")) => connect(url(), { binding, version, ...options }),
    async spied() {
      const told: unknown[] = [];
      const spy: Interceptor = (next) => ({
        call: (...asked) => next.call(...asked),
        async stream(...asked) {
          try {
            const reply = await next.stream(...asked);
            told.push("opened");
            return reply;
          } catch (thrown) {
            told.push((thrown as { readonly code: unknown }).code);
            throw thrown;
          }
        },
      });
      return { client: await at.open({ ...as("ada"), interceptors: [spy] }), told };
    },
    async askedTwice() {
      const { client: watching, told } = await at.spied();
      const id = (await at.client.sendMessage("ask")).task?.id ?? "";
      const states: unknown[] = [];
      for await (const { task, statusUpdate } of watching.subscribeToTask(id)) {
        const state = task?.status.state ?? statusUpdate?.status.state;
        states.push(state);
        if (states.length === 1) await at.client.sendMessage({ message: message("ask", { taskId: id }) });
        else if (state === "TASK_STATE_INPUT_REQUIRED" && task === undefined) await at.client.cancelTask(id);
      }
      return { states, told };
    },
  };
  return at;
}
