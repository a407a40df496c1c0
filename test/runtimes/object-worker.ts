import { createHandler, defineAgent, memoryStore, silentLogger, type Agent, type Handler } from "@parley/server";
import type { Logger } from "@parley/a2a/protocol";
import { durableObjectStore, type DurableObjectStore, type ObjectStorage } from "@parley/sql/durable-object";

/** Serves agents in Durable Objects, and another agent in a plain Worker. */

interface Env {
  readonly PUBLIC_URL: string;
  readonly AGENTS: Namespace;
  readonly SLEEPERS: Namespace;
  readonly FORGETFUL: Namespace;
}

interface Namespace {
  idFromName(name: string): unknown;
  get(id: unknown): { fetch(request: Request): Promise<Response> };
}

const steps = 6;
const keys = [btoa("k".repeat(32))];

/** Sends log messages to the test through standard error. */
const logger: Logger = {
  ...silentLogger,
  debug: (message) => console.error(message),
  info: (message) => console.error(message),
};

/** Reports each step to the URL in the message, so that the test learns of the step without a request to the object. */
const reporter: Agent = defineAgent({
  name: "Reporter",
  description: "Takes some steps.",
  version: "1.0.0",
  skills: [],
  resumable: true,
  async *onMessage(turn) {
    if (!turn.text.startsWith("http")) return turn.reply("Where to?");
    const done = (turn.checkpoint as number | undefined) ?? 0;
    if (done === 0) yield turn.artifact({ artifactId: "steps", parts: [{ text: "0" }], open: true });
    for (let step = done + 1; step <= steps; step += 1) {
      await fetch(`${turn.text}?step=${step}&attempt=${turn.attempt}`);
      yield [turn.append("steps", [{ text: String(step) }], { last: step === steps }), turn.saveCheckpoint(step)];
    }
    return undefined;
  },
});

class AgentObject {
  readonly #store: DurableObjectStore;
  readonly #handler: Handler;

  constructor(storage: ObjectStorage, publicUrl: string, alarm: number | false) {
    this.#store = durableObjectStore(storage, { alarm });
    const push = { keys, retryAfter: [1_500, 1_500, 1_500] };
    this.#handler = createHandler(reporter, { store: this.#store, publicUrl, push, logger });
  }

  fetch(request: Request): Promise<Response> {
    return this.#handler.fetch(request);
  }

  alarm(): Promise<void> {
    return this.#store.onAlarm(this.#handler);
  }
}

export class Agents extends AgentObject {
  constructor({ storage }: { storage: ObjectStorage }, { PUBLIC_URL }: Env) {
    super(storage, PUBLIC_URL, 1_000);
  }
}

/** The same class without alarms. */
export class Sleepers extends AgentObject {
  constructor({ storage }: { storage: ObjectStorage }, { PUBLIC_URL }: Env) {
    super(storage, `${PUBLIC_URL}/sleepers`, false);
  }
}

/** A class that does not implement its alarm handler. */
export class Forgetful {
  readonly #handler: Handler;

  constructor({ storage }: { storage: ObjectStorage }, { PUBLIC_URL }: Env) {
    const error: Logger["error"] = (message, { cause } = {}) => console.error(message, String(cause));
    const publicUrl = `${PUBLIC_URL}/forgetful`;
    const store = durableObjectStore(storage);
    this.#handler = createHandler(reporter, { store, publicUrl, logger: { ...silentLogger, error } });
  }

  fetch(request: Request): Promise<Response> {
    return this.#handler.fetch(request);
  }
}

interface Context {
  waitUntil(work: Promise<void>): void;
}

/** Created at the top level of the module, where Workers allow neither timers nor random values. */
const plain = createHandler(reporter, {
  store: memoryStore(),
  publicUrl: "https://plain.example.com/plain",
  waitUntil: (work, _env, ctx) => (ctx as Context).waitUntil(work),
});

export default {
  async fetch(request: Request, env: Env, ctx: Context): Promise<Response> {
    const { pathname } = new URL(request.url);
    if (pathname === "/plain/wake") return Response.json(await plain.wake());
    if (pathname.startsWith("/plain")) return plain.fetch(request, env, ctx);
    const [, first] = pathname.split("/");
    const objects = first === "sleepers" ? env.SLEEPERS : first === "forgetful" ? env.FORGETFUL : env.AGENTS;
    return objects.get(objects.idFromName("one")).fetch(request);
  },
};
