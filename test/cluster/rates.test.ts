import { Agent, request as httpRequest } from "node:http";
import { describe, expect, onTestFinished, test } from "vitest";
import { defineAgent, silentLogger, type RateLimits } from "@parley/server";
import { bearer } from "@parley/a2a/auth";
import { serve } from "@parley/node";
import { postgresStore, type PostgresStore, type PostgresStoreOptions } from "@parley/sql/postgres";
import { useDatabase } from "../postgres/database.ts";
import { startProxy } from "../postgres/proxy.ts";
import { figure } from "./node-process.ts";

/* Tests callers' rate limits across several nodes on PostgreSQL (docs/decisions/rate-limits.md). Budgets refill in a day, longer than any test. */

const database = useDatabase();
const day = 24 * 60 * 60_000;
const hundred = { requests: 100, per: day };
const agent = defineAgent({
  name: "Echo",
  description: "Says it again.",
  version: "1.0.0",
  skills: [],
  onMessage: (turn) => turn.reply(turn.text),
});
const token = "secret-of-ada-0123456789";

interface Node {
  readonly store: PostgresStore;
  /** Lists the tasks of a caller. Resolves to the status. */
  list(credential?: string): Promise<number>;
}

let schemas = 0;
const newSchema = (): string => `rates_${(schemas += 1)}`;

async function node(schema: string, rate: RateLimits, options: Partial<PostgresStoreOptions> = {}): Promise<Node> {
  const store = await postgresStore({ database: database().url, schema, ...options });
  const server = await serve(agent, {
    port: 0,
    store,
    logger: silentLogger,
    limits: { rate },
    authenticator: bearer({ [token]: { subject: "ada" } }),
  });
  const connections = new Agent({ keepAlive: true, maxSockets: 32 });
  onTestFinished(async () => {
    connections.destroy();
    await server.close();
    await store.close();
  });
  const list = (credential = token): Promise<number> =>
    new Promise((resolve, reject) => {
      const headers = { "A2A-Version": "1.0", authorization: `Bearer ${credential}` };
      const request = httpRequest(new URL("/tasks", server.url), { agent: connections, headers }, (response) => {
        response.resume().on("end", () => resolve(response.statusCode ?? NaN));
      });
      request.on("error", reject).end();
    });
  return { store, list };
}

async function nodes(count: number, rate: RateLimits): Promise<readonly Node[]> {
  const schema = newSchema();
  return Promise.all(Array.from({ length: count }, () => node(schema, rate)));
}

/** Sends concurrent requests to the nodes in turn, and counts the requests with this status. */
async function count(all: readonly Node[], requests: number, status: number, credential?: string): Promise<number> {
  const statuses = await Promise.all(
    Array.from({ length: requests }, (_, at) => (all[at % all.length] as Node).list(credential)),
  );
  return statuses.filter((each) => each === status).length;
}

describe("a limit of 100 requests, at two nodes", () => {
  test("holds for a caller who uses both in parallel, except for two extra requests per node", async () => {
    const both = await nodes(2, { principal: hundred });
    const allowed = await count(both, 300, 200);
    expect(allowed).toBeGreaterThanOrEqual(100);
    expect(allowed).toBeLessThanOrEqual(104);
    expect(await count(both, 20, 429)).toBe(20);
    // A node that joins later knows the usage by the third request that it gets.
    const [first] = both as [Node];
    const rows = await database().run(`SELECT count(*)::int AS n FROM rates_${schemas}.rates`);
    expect(rows.rows).toEqual([{ n: 1 }]);
    const later = await node(`rates_${schemas}`, { principal: hundred });
    expect(await count([later], 20, 200)).toBeLessThanOrEqual(2);
    expect(await first.list()).toBe(429);
  });

  test("holds before authentication, for an address", async () => {
    const both = await nodes(2, { address: hundred });
    const allowed = await count(both, 300, 200);
    expect(allowed).toBeGreaterThanOrEqual(100);
    expect(allowed).toBeLessThanOrEqual(104);
  });

  test("stops guesses at both nodes, and then also valid credentials from that address", async () => {
    const both = await nodes(2, { failures: hundred });
    const checked = await count(both, 400, 401, "wrong");
    expect(checked).toBeGreaterThanOrEqual(100);
    expect(checked).toBeLessThanOrEqual(120);
    expect(await count(both, 20, 429)).toBe(20);
  });

  test("applies to each node alone while the database is unavailable, and to both together when it is back", async () => {
    const schema = newSchema();
    const url = new URL(database().url);
    const proxy = await startProxy(Number(url.port));
    onTestFinished(() => proxy.close());
    url.port = String(proxy.port);
    const away = await node(schema, { principal: hundred }, { database: url.href, outageTimeout: 100 });
    const other = await node(schema, { principal: hundred });
    expect(await away.list()).toBe(200);
    proxy.onRequest = () => "cut";
    proxy.cut();
    // Requests within the limit fail, because they need the database. The node still rejects requests above the limit.
    const statuses = await Promise.all(Array.from({ length: 150 }, () => away.list()));
    expect(statuses.filter((status) => status === 429)).toHaveLength(51);
    expect(statuses).not.toContain(200);
    proxy.onRequest = () => undefined;
    const look = async (): Promise<number> => {
      await away.list();
      return other.list();
    };
    await expect.poll(look, { interval: 50 }).toBe(429);
  });
});

test("the cost of a limit: a local answer, and a call of the database", async () => {
  const [{ store }] = (await nodes(1, {})) as [Node];
  const { rates } = store;
  if (rates === undefined) throw new Error("PostgreSQL has budgets that nodes share");
  const timed = async (calls: number, budgets: number): Promise<number> => {
    const began = performance.now();
    for (let at = 0; at < calls; at += 1) {
      await rates.take(
        Array.from({ length: budgets }, (_, n) => ({ key: `k${n}`, requests: 1_000, per: day, used: 1, wanted: 1 })),
      );
    }
    return (performance.now() - began) / calls;
  };
  await timed(5, 1);
  const [one, many] = [await timed(50, 1), await timed(5, 500)];
  figure(`a call with one budget: ${one.toFixed(2)} ms; with 500: ${many.toFixed(1)} ms`);
  const [row] = await rates.take([{ key: "k0", requests: 1_000, per: day, used: 0, wanted: 0 }]);
  // Each of the 60 calls covers two requests.
  expect(Math.round(((row?.back ?? NaN) / day) * 1_000)).toBe(120);
});
