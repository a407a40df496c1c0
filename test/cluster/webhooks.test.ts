import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, onTestFinished, test } from "vitest";
import { defineAgent, serve, silentLogger, type Turn } from "@parley/node";
import { connect, type Client, type StreamResponse } from "@parley/a2a";
import { postgresStore } from "@parley/sql/postgres";
import { useDatabase } from "../postgres/database.ts";
import { figure, startNode } from "./node-process.ts";

/* Tests webhooks of three nodes on one PostgreSQL (A2A 1.0 §4.3.3), sent to real receivers (docs/decisions/webhooks.md). */

const database = useDatabase();
const push = { keys: [Buffer.alloc(32, 7).toString("base64")] };
let schemas = 0;
const newSchema = (): string => `webhooks_${(schemas += 1)}`;

/** A request that arrived at a receiver. */
interface Got {
  readonly path: string;
  readonly id: string;
  readonly sequence: number;
  /** The node that sent the request. The config has no credentials, so the request has a JWT of its sender. */
  readonly node: string;
  readonly event: StreamResponse;
  /** The number of open requests of the same config, including this request. */
  readonly open: number;
  answer(): void;
  /** Answers like a proxy without a server behind it. */
  refuse(): void;
}

function senderOf({ authorization = "" }: IncomingHttpHeaders): string {
  const claims = authorization.split(".")[1] ?? "";
  return (JSON.parse(Buffer.from(claims, "base64url").toString()) as { iss: string }).iss;
}

/** Starts a receiver. `answers` handles each request. By default, the receiver answers immediately. */
async function receiver(answers: (got: Got) => void = (got) => got.answer()) {
  const got: Got[] = [];
  const open = new Map<string, number>();
  const state = { all: 0, most: 0 };
  const begin = (path: string, by: number): number => {
    open.set(path, (open.get(path) ?? 0) + by);
    state.all += by;
    state.most = Math.max(state.most, state.all);
    return open.get(path) ?? 0;
  };
  const server = createServer((request, response: ServerResponse) => {
    const path = request.url ?? "";
    const count = begin(path, 1);
    response.on("close", () => begin(path, -1));
    let body = "";
    request.setEncoding("utf8").on("data", (text: string) => (body += text));
    request.on("end", () => {
      const { headers } = request;
      const one: Got = {
        path,
        id: String(headers["webhook-id"]),
        sequence: Number(headers["parley-sequence"]),
        node: senderOf(headers),
        event: JSON.parse(body) as StreamResponse,
        open: count,
        answer: () => void response.writeHead(204).end(),
        refuse: () => void response.writeHead(503).end(),
      };
      got.push(one);
      answers(one);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const of = (path: string): readonly Got[] => got.filter((each) => each.path === path);
  return { url, got, of, state };
}

const isEnd = ({ event }: Got): boolean => event.statusUpdate?.status.state === "TASK_STATE_COMPLETED";

/** Returns a message that registers a webhook at this address. */
const sending = (text: string, url: string): Parameters<Client["sendMessage"]>[0] => ({
  message: text,
  configuration: { returnImmediately: true, taskPushNotificationConfig: { url, authentication: { scheme: "Bearer" } } },
});

/** Starts a node in this process, which polls constantly for the rows of other nodes. */
async function node(schema: string): Promise<Client> {
  const store = await postgresStore({ database: database().url, schema, connections: 4 });
  const agent = defineAgent({
    name: "Baker",
    description: "Bakes.",
    version: "1.0.0",
    skills: [],
    async *onMessage(turn: Turn) {
      for (const bread of ["rye", "spelt", "oat"]) yield turn.artifact({ artifactId: bread, parts: [{ text: bread }] });
    },
  });
  const server = await serve(agent, { port: 0, store, logger: silentLogger, push, pollInterval: 20 });
  const close = async (): Promise<void> => {
    await server.close({ grace: 0 });
    await store.close();
  };
  onTestFinished(close);
  const client = await connect(server.url);
  closing.set(client, close);
  return client;
}

/** Closes each node that `node()` started. */
const closing = new Map<Client, () => Promise<void>>();

/** Checks that a config's requests have numbers in order without gaps, and that a repeated number has the same id. */
function checkOrder(received: readonly Got[]): void {
  const ids = new Map<number, string>();
  for (const { sequence, id } of received) {
    expect(sequence === ids.size || sequence === ids.size + 1).toBe(true);
    expect(ids.get(sequence) ?? id).toBe(id);
    ids.set(sequence, id);
  }
}

describe("three nodes", () => {
  test("deliver each event in order for each config, no two of them one config at a time, and share the work", async () => {
    const schema = newSchema();
    const { url, got, of } = await receiver((each) => setTimeout(each.answer, 10));
    const [client] = await Promise.all([node(schema), node(schema), node(schema)]);
    const paths = Array.from({ length: 30 }, (_, at) => `/${at}`);
    // One node takes all messages.
    await Promise.all(paths.map((path) => client.sendMessage(sending("bread", url + path))));
    await expect.poll(() => got.filter(isEnd).length, { timeout: 60_000 }).toBe(paths.length);
    for (const path of paths) {
      checkOrder(of(path));
      // No request was sent while another request of the same config was open. None was repeated, because no node died.
      expect(of(path).map(({ open, sequence }) => [open, sequence])).toEqual(of(path).map((_, at) => [1, at + 1]));
      expect(of(path).flatMap(({ event }) => event.artifactUpdate?.artifact.artifactId ?? [])).toEqual([
        "rye",
        "spelt",
        "oat",
      ]);
    }
    const nodes = new Set(got.map((each) => each.node));
    figure(
      `deliveries by node: ${[...nodes].map((name) => got.filter((each) => each.node === name).length).join(", ")}`,
    );
    expect(nodes.size).toBeGreaterThan(1);
  });

  test("leave a hanging receiver one request each, and deliver to the others meanwhile", async () => {
    const schema = newSchema();
    const hanging = await receiver(() => {});
    const alive = await receiver();
    const clients = await Promise.all([node(schema), node(schema), node(schema)]);
    const send = (to: string, at: number) => (clients[at % 3] as Client).sendMessage(sending("bread", `${to}/${at}`));
    await Promise.all(Array.from({ length: 30 }, (_, at) => send(hanging.url, at)));
    await expect.poll(() => hanging.got.length, { timeout: 60_000 }).toBeGreaterThan(0);
    await Promise.all(Array.from({ length: 15 }, (_, at) => send(alive.url, at)));
    await expect.poll(() => alive.got.filter(isEnd).length, { timeout: 60_000 }).toBe(15);
    for (let at = 0; at < 15; at += 1) checkOrder(alive.of(`/${at}`));
    // No node knows the receiver yet, so each node tries it once.
    expect(hanging.state.most).toBeLessThanOrEqual(3);
  });
});

test("a node that starts sends no burst to a receiver that others know to be down, nor single requests to one that is up", async () => {
  const schema = newSchema();
  const rows = async (where: string): Promise<number> => {
    const query = `SELECT count(*)::int AS n FROM ${schema}.features WHERE ${where}`;
    return ((await database().run(query)).rows[0] as { n: number }).n;
  };
  const notes = async (where: string): Promise<number> => {
    const { rows: found } = await database().run(`SELECT 1 FROM ${schema}.notes WHERE ${where}`);
    return found.length;
  };
  const down = await receiver((each) => each.refuse());
  let isHeld = false;
  const up = await receiver((each) => {
    if (!isHeld) each.answer();
  });
  const send = (client: Client, to: string, count: number) =>
    Promise.all(Array.from({ length: count }, (_, at) => client.sendMessage(sending("bread", `${to}/${at}`))));
  const first = await node(schema);
  await send(first, down.url, 10);
  await send(first, up.url, 10);
  await expect.poll(() => notes("(value::json->>'failures')::int >= 5"), { timeout: 60_000 }).toBe(1);
  await expect.poll(() => notes("(value::json->>'allowed')::int = 8"), { timeout: 60_000 }).toBe(1);
  await expect.poll(() => up.got.filter(isEnd).length, { timeout: 60_000 }).toBe(10);
  await closing.get(first)?.();

  const failures = down.got.length;
  const fresh = await node(schema);
  await send(fresh, `${down.url}/fresh`, 20);
  // All rows are deferred without an attempt. If the pause has ended in the meantime, one row was tried.
  const putOff = "due > extract(epoch FROM clock_timestamp()) * 1000 AND value LIKE '%/fresh/%'";
  await expect.poll(() => rows(putOff), { timeout: 60_000 }).toBe(20);
  expect(down.got.length).toBeLessThanOrEqual(failures + 1);

  // The other receiver no longer answers. It must still get as many requests as before, not just one.
  isHeld = true;
  await send(fresh, `${up.url}/fresh`, 20);
  await expect.poll(() => up.state.all, { timeout: 60_000 }).toBe(8);
});

test("deliver the events of a paused node and of a killed one before the claims end", async () => {
  const schema = newSchema();
  const nodes = await Promise.all([0, 1, 2].map(() => startNode(database().url, schema, { push })));
  const urls = await Promise.all(nodes.map(async ({ until }) => ((await until("ready")).url ?? "").replace(/\/$/, "")));
  // The first request of a config hangs.
  const { url, got, of } = await receiver((each) => {
    if (of(each.path).length > 1) each.answer();
  });
  /** Returns the end of the last claim, and the current time, by the database clock. */
  const claims = async (): Promise<{ end: number; now: number }> => {
    const query = `SELECT max(due)::float8 AS end, extract(epoch FROM clock_timestamp())::float8 * 1000 AS now
      FROM ${schema}.features WHERE feature = 'push'`;
    return (await database().run(query)).rows[0] as { end: number; now: number };
  };
  const leave = async (path: string, signal: NodeJS.Signals): Promise<Got> => {
    const [at = 0] = nodes.flatMap(({ child }, index) =>
      child.signalCode === null && !stopped.has(index) ? [index] : [],
    );
    const client = await connect(urls[at] ?? "");
    await client.sendMessage(sending("bread", url + path));
    await expect.poll(() => of(path).length, { timeout: 60_000 }).toBe(1);
    const [first] = of(path) as [Got];
    const holder = urls.indexOf(first.node.replace(/\/$/, ""));
    const { end } = await claims();
    nodes[holder]?.child.kill(signal);
    stopped.add(holder);
    const since = performance.now();
    await expect.poll(() => of(path).length, { timeout: 60_000, interval: 10 }).toBeGreaterThan(1);
    figure(`${signal}: delivered by another node after ${((performance.now() - since) / 1000).toFixed(1)} s`);
    expect((await claims()).now).toBeLessThan(end);
    const [, again] = of(path) as [Got, Got];
    expect(again.node).not.toBe(first.node);
    expect([again.id, again.sequence]).toEqual([first.id, 1]);
    await expect.poll(() => of(path).some(isEnd), { timeout: 60_000 }).toBe(true);
    return first;
  };
  const stopped = new Set<number>();

  const first = await leave("/stopped", "SIGSTOP");
  const [held] = [...stopped] as [number];
  // The paused node continues, and gets its answer. The store rejects its write, and the node sends nothing again.
  nodes[held]?.child.kill("SIGCONT");
  first.answer();
  stopped.clear();
  await leave("/killed", "SIGKILL");

  for (const path of ["/stopped", "/killed"]) {
    checkOrder(of(path));
    const ids = new Set(of(path).map(({ id }) => id));
    expect(of(path).length).toBeGreaterThan(ids.size);
    // The store rejected the write of the paused node, so each delivery counts once.
    const stored = async (): Promise<unknown> => {
      const query = `SELECT (value::json->>'delivered')::int AS n FROM ${schema}.features WHERE value LIKE '%${path}"%'`;
      return (await database().run(query)).rows;
    };
    await expect.poll(stored, { timeout: 60_000 }).toEqual([{ n: ids.size }]);
  }
  expect(got.length).toBe(of("/stopped").length + of("/killed").length);
});
