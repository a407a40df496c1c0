import { afterEach, describe, expect, test, vi } from "vitest";
import type { Store } from "@parley/server";
import { postgresStore } from "@parley/sql/postgres";
import { useDatabase } from "../../../../test/postgres/database.ts";
import { startProxy, type Proxy } from "../../../../test/postgres/proxy.ts";
import { alice, making, verdicts } from "./given.ts";

/*
 * A network loses packets: calls are neither answered nor rejected. The statement timeout is longer than a test may take, so that only
 * `outageTimeout` can end calls.
 */

const database = useDatabase();
const opened: { close(): Promise<unknown> }[] = [];
const never = 3_600_000;

afterEach(async () => {
  vi.restoreAllMocks();
  for (const one of opened.splice(0).reverse()) await one.close();
});

async function behindProxy(schema: string, outageTimeout: number): Promise<{ proxy: Proxy; store: Store }> {
  const url = new URL(database().url);
  const proxy = await startProxy(Number(url.port));
  opened.push(proxy);
  url.port = String(proxy.port);
  const limits = { statementTimeout: never, connectTimeout: 2_000, outageTimeout };
  const store = await postgresStore({ database: url.href, schema, connections: 4, wakeup: false, ...limits });
  opened.push(store);
  return { proxy, store };
}

describe("a network that loses every packet", () => {
  test("each call ends as Unavailable by `outageTimeout`, on existing and new connections, and says when to retry", async () => {
    const { proxy, store } = await behindProxy("lost", 100);
    await store.append([making("t")]);
    proxy.isSilent = true;
    const calls = (): Promise<unknown>[] => [
      store.append([making("u")]),
      store.head(alice, "t"),
      store.load(alice, "t", { artifacts: true }),
      store.list(alice, { limit: 1, artifacts: false }),
      // One call more than there are connections.
      store.read(alice, "t", { after: 0, limit: 1 }),
    ];
    for (let round = 0; round < 2; round += 1) {
      const settled = await Promise.allSettled(calls());
      for (const each of settled) {
        expect(each).toMatchObject({ status: "rejected", reason: { code: "Unavailable", retryAfter: 1 } });
      }
    }
    proxy.isSilent = false;
    // Connections that were opened during the silence are closed first.
    await expect.poll(() => store.append([making("v")]).then(verdicts, () => undefined)).toEqual(["ok"]);
    // A rejected append is not stored later, either.
    expect(await store.head(alice, "u")).toBeUndefined();
  });

  test("during a commit: its outcome is read on a new connection", async () => {
    const { proxy, store } = await behindProxy("commit", 1_000);
    await store.append([making("t")]);
    let commits = 0;
    proxy.onRequest = (text) => {
      if (text.includes("COMMIT\0") && (commits += 1) === 1) proxy.forget();
      return undefined;
    };
    // The server commits it, but the response is lost.
    expect(verdicts(await store.append([making("u")]))).toEqual(["ok"]);
    expect(commits).toBe(1);
    expect(await store.head(alice, "u")).toBeDefined();
  });
});

describe("a NAT that forgets its connections", () => {
  test.each([
    ["between two calls", 0],
    ["long before a call: idle connections are checked first", 60_000],
  ])("%s fails no call: silent connections are discarded, with all that were silent as long", async (_when, later) => {
    const { proxy, store } = await behindProxy(`nat${later}`, 2_500);
    // Uses all connections once.
    await Promise.all(Array.from({ length: 4 }, () => store.load(alice, "t", { artifacts: false })));
    proxy.forget();
    const now = performance.now.bind(performance);
    vi.spyOn(performance, "now").mockImplementation(() => now() + later);
    expect(verdicts(await store.append([making("t")]))).toEqual(["ok"]);
    const loads = Array.from({ length: 4 }, () => store.load(alice, "t", { artifacts: false }));
    expect((await Promise.all(loads)).map((loaded) => loaded?.task.id)).toEqual(Array(4).fill("t"));
  });
});
