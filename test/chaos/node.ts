import { openSync, writeSync } from "node:fs";
import { serve, silentLogger, type Server } from "@parley/node";
import type { LogFields } from "@parley/a2a/internal/base/index";
import { postgresStore } from "@parley/sql/postgres";
import { prometheus } from "@parley/telemetry/prometheus";
import { storyteller } from "./agents.ts";
import type { Stored } from "./history.ts";
import { mutated, type Mutation } from "./mutations.ts";

// A node of the cluster. Its first argument is its settings as JSON. The node sends "ready" to its parent once it listens, obeys its parent's
// commands, and ends with its parent. It writes each write under a fence to its journal synchronously, because the node may be killed.

export interface NodeSettings {
  readonly port: number;
  readonly publicUrl: string;
  readonly database: string;
  /** The URL of the service with side effects. */
  readonly service: string;
  /** The path of the journal file. */
  readonly journal: string;
  /** The name of this process. */
  readonly name: string;
  /** The duration of a lease, in milliseconds. */
  readonly ttl: number;
  readonly mutation?: Mutation;
}

/** A command of the parent. */
export interface Command {
  readonly dropWakeups: boolean;
}

const settings = JSON.parse(process.argv[2] ?? "") as NodeSettings;
const { name, service } = settings;
const journal = openSync(settings.journal, "a");

const store = await postgresStore({ database: settings.database, connections: 8 });
let dropsWakeups = false;
const publish = store.wakeup.publish.bind(store.wakeup);
store.wakeup.publish = (taskIds) => {
  if (!dropsWakeups) publish(taskIds);
};
if (settings.mutation !== undefined) mutated(store, settings.mutation);

const append = store.append.bind(store);
store.append = async (items) => {
  const outcomes = await append(items);
  const at = Date.now();
  const lines: string[] = [];
  for (const [index, item] of items.entries()) {
    const outcome = outcomes[index];
    if (!outcome?.ok || !("task" in item) || item.fence === undefined) continue;
    // Any node may store cancels and the user's messages, so only writes of a run count.
    if (!item.records.some(({ actor }) => actor === "agent")) continue;
    const stored: Stored = {
      type: "stored",
      at,
      node: name,
      taskId: item.task.taskId,
      fence: item.fence,
      seq: outcome.seq,
      records: item.records.length,
    };
    lines.push(`${JSON.stringify(stored)}\n`);
  }
  if (lines.length > 0) writeSync(journal, lines.join(""));
  return outcomes;
};

function say(level: string) {
  return (message: string, fields?: LogFields): void => {
    const detail = JSON.stringify(fields, (_key, value: unknown) =>
      value instanceof Error ? { stack: value.stack, cause: value.cause } : value,
    );
    writeSync(2, `${level} ${message} ${detail ?? ""}\n`);
  };
}

const call: Parameters<typeof storyteller>[1] = async ({ signal, ...what }) => {
  const response = await fetch(service, { method: "POST", body: JSON.stringify(what), signal });
  return (await response.json()) as number;
};

const metrics = prometheus();
const server: Server = await serve(
  [
    { path: "/resumable", agent: storyteller(true, call) },
    { path: "/plain", agent: storyteller(false, call) },
  ],
  {
    port: settings.port,
    publicUrl: settings.publicUrl,
    store,
    grace: 2_000,
    // This limit is below the number of conversations, so that tasks have to wait in the queue.
    limits: { runs: 50 },
    // Simulates a separate machine for each node: no node can see that the process of another node has ended.
    lease: { ttl: settings.ttl, maxDeaths: Infinity, maxAttempts: Infinity, isGone: () => false },
    logger: { ...silentLogger, warn: say("warn"), error: say("error") },
    push: {
      keys: [Buffer.alloc(32, 7).toString("base64")],
      net: { allowPrivate: true },
      timeout: 3_000,
      events: "all",
      retryAfter: Array.from({ length: 1_000 }, () => 200),
    },
    operators: true,
    observer: metrics,
    routes: [
      metrics.route,
      {
        path: "/word",
        answer: async (request) => {
          const [, taskId] = /^\/word\/(.+)$/.exec(new URL(request.url).pathname) ?? [];
          if (taskId === undefined) return undefined;
          await server.signal(taskId, "word", "hello", { id: "word" });
          return new Response("Thank you\n");
        },
      },
    ],
  },
);
process.on("message", ({ dropWakeups }: Command) => (dropsWakeups = dropWakeups));
// If the parent ends, the node ends too.
process.on("disconnect", () => process.kill(process.pid, "SIGKILL"));
process.send?.("ready");
