import { wakeupContract } from "@parley/testing";
import { systemClock } from "@parley/server";
import type { Clock } from "@parley/a2a/protocol";
import type { Wakeup } from "@parley/server/store";
import { afterEach, describe, expect, it } from "vitest";
import { useDatabase } from "../../../../test/postgres/database.ts";
import { connect } from "../../src/postgres/connect.ts";
import type { Database } from "../../src/postgres/database.ts";
import { notifyWakeup, type NotifyWakeupOptions } from "../../src/postgres/wakeup.ts";
import { recorder } from "./logs.ts";

const database = useDatabase();
const opened: { close(): Promise<void> }[] = [];

afterEach(async () => {
  for (const one of opened.splice(0).reverse()) await one.close();
});

async function open(options: NotifyWakeupOptions = {}): Promise<Wakeup> {
  const db = await connect({ database: database().url });
  const wakeup = await notifyWakeup(db.driver, db.server.pooled, options);
  return {
    get isConnected() {
      return wakeup.isConnected;
    },
    publish: (taskIds) => wakeup.publish(taskIds),
    subscribe: (listener) => wakeup.subscribe(listener),
    async close() {
      await wakeup.close();
      await db.close();
    },
  };
}

describe("the contract of wake-ups, by LISTEN and NOTIFY", () => {
  wakeupContract({ describe, it, expect }, { open: () => open(), disconnect: () => database().disconnectAll() });
});

/** A node whose notifications a test can drop. `pooled`: it assumes a pooler. */
async function node(options: NotifyWakeupOptions & { readonly deaf?: boolean; readonly pooled?: boolean } = {}) {
  const { deaf = false, pooled = false, ...more } = options;
  const db = await connect({ database: database().url });
  opened.push(db);
  const state = { deaf, listens: 0 };
  const { lines, logger } = recorder();
  const driver = {
    ...db.driver,
    async listen(...[channel, listener]: Parameters<NonNullable<typeof db.driver.listen>>) {
      state.listens += 1;
      const notified = (payload: string): void => {
        if (!state.deaf) listener.notified(payload);
      };
      return (await db.driver.listen?.(channel, { ...listener, notified })) as never;
    },
  };
  // Short only if no notification may arrive: otherwise a busy machine needs longer.
  const wakeup = await notifyWakeup(driver, pooled, { logger, echoTimeout: deaf ? 200 : 10_000, ...more });
  opened.push(wakeup);
  const told: (string | undefined)[] = [];
  wakeup.subscribe((taskId) => told.push(taskId));
  return { db, wakeup, state, lines, told };
}

/** The number of listening sessions, and their locks. */
async function listeners(db: Database): Promise<unknown> {
  const { rows } = await db.query(
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'SET idle_session_timeout%'",
  );
  return rows[0]?.[0];
}

describe("wake-ups by LISTEN and NOTIFY", () => {
  it("detect at startup that notifications do not arrive, report it, and retry until they do", async () => {
    const { wakeup, state, lines, told } = await node({ deaf: true });
    expect(wakeup.isConnected).toBe(false);
    expect(lines).toEqual([expect.stringContaining("notifications do not arrive")]);
    state.deaf = false;
    await expect.poll(() => wakeup.isConnected).toBe(true);
    // The node missed what was published in the meantime, so any task may have changed.
    expect(told).toEqual([undefined]);
    expect(lines[1]).toContain("notifications arrive again");
  });

  it("detect later that notifications stopped, on a connection that looks alive", async () => {
    const { wakeup, state, told } = await node({ heartbeat: 50, echoTimeout: 500 });
    const other = await node();
    await expect.poll(() => wakeup.isConnected).toBe(true);
    told.length = 0;
    state.deaf = true;
    await expect.poll(() => wakeup.isConnected).toBe(false);
    expect(told).toEqual([undefined]);
    state.deaf = false;
    await expect.poll(() => wakeup.isConnected).toBe(true);
    other.wakeup.publish(["a"]);
    await expect.poll(() => told).toContain("a");
  });

  it("keep the connection that they have while notifications arrive", async () => {
    let beats = 0;
    const clock: Clock = {
      ...systemClock,
      after(ms, run) {
        if (ms === 20) beats += 1;
        return systemClock.after(ms, run);
      },
    };
    const { wakeup, state } = await node({ heartbeat: 20, echoTimeout: 60_000, clock });
    await expect.poll(() => beats).toBeGreaterThan(5);
    expect([wakeup.isConnected, state.listens]).toEqual([true, 1]);
  });

  it("ignore other senders, and stay separate on other channels", async () => {
    const { told } = await node({ channel: 'Odd "channel"' });
    const { wakeup: elsewhere } = await node();
    elsewhere.publish(["elsewhere"]);
    for (const payload of ["", "{}", "[1]", '["x",{}]', "x".repeat(7999), '["stranger","last"]']) {
      await database().run("SELECT pg_notify($1, $2)", ['Odd "channel"', payload]);
    }
    await expect.poll(() => told).toEqual(["last"]);
  });

  it("are off if a pool has one connection, because the statements need it", async () => {
    const db = await connect({ database: database().url, connections: 1 });
    opened.push(db);
    const { lines, logger } = recorder();
    const wakeup = await notifyWakeup(db.driver, false, { logger });
    opened.push(wakeup);
    expect(wakeup.isConnected).toBe(false);
    expect(lines).toEqual([expect.stringContaining("readers poll")]);
    wakeup.publish(["a"]);
    await expect(db.query("SELECT 1")).resolves.toMatchObject({ count: 1 });
  });

  it("that the pooler does not pass are still sent, retried, and reported once", async () => {
    const pauses: (() => void)[] = [];
    const clock: Clock = {
      ...systemClock,
      after: (ms, run) => (ms === 300_000 ? (pauses.push(run), () => undefined) : systemClock.after(ms, run)),
    };
    const { wakeup, state, lines } = await node({ deaf: true, pooled: true, clock });
    const other = await node();
    expect(wakeup.isConnected).toBe(false);
    wakeup.publish(["sent"]);
    await expect.poll(() => other.told).toContain("sent");
    // The next attempt fails, and the one after it succeeds.
    pauses.shift()?.();
    await expect.poll(() => pauses.length).toBe(1);
    state.deaf = false;
    pauses.shift()?.();
    await expect.poll(() => wakeup.isConnected).toBe(true);
    expect(lines).toEqual([expect.stringContaining("do not pass the pooler"), expect.stringContaining("arrive again")]);
  });

  it("that once passed the pooler are retried at once", async () => {
    const { wakeup, state } = await node({ pooled: true, heartbeat: 50, echoTimeout: 500 });
    await expect.poll(() => wakeup.isConnected).toBe(true);
    state.deaf = true;
    await expect.poll(() => state.listens).toBeGreaterThan(2);
    state.deaf = false;
    await expect.poll(() => wakeup.isConnected).toBe(true);
  });

  it("do not trust a connection that ends while it starts to listen", async () => {
    const db = await connect({ database: database().url });
    opened.push(db);
    let listens = 0;
    const driver = {
      ...db.driver,
      async listen(...[channel, listener]: Parameters<NonNullable<typeof db.driver.listen>>) {
        listens += 1;
        const listening = await db.driver.listen?.(channel, listener);
        if (listens === 1) listener.ended(new Error("gone"));
        return listening as never;
      },
    };
    const wakeup = await notifyWakeup(driver, false, { echoTimeout: 600_000 });
    opened.push(wakeup);
    await expect.poll(() => wakeup.isConnected).toBe(true);
    expect(listens).toBe(2);
  });

  it("listen on a session that the server never ends for being idle", async () => {
    const [name] = new URL(database().url).pathname.slice(1).split("/");
    await database().run(`ALTER DATABASE ${name ?? ""} SET idle_session_timeout = 200`);
    try {
      const { db, wakeup, lines } = await node();
      expect(await listeners(db)).toBe(1);
      // The pool's other connections end in the meantime.
      const idle = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state = 'idle'";
      await expect.poll(async () => (await database().run(idle)).rows).toEqual([{ count: "1" }]);
      expect([wakeup.isConnected, lines]).toEqual([true, []]);
    } finally {
      await database().run(`ALTER DATABASE ${name ?? ""} RESET idle_session_timeout`);
    }
  });

  it("leave nothing behind when they are closed, even while they connect", async () => {
    const { db, wakeup } = await node();
    await wakeup.close();
    await wakeup.close();
    const connecting = notifyWakeup(db.driver, false);
    const second = await connecting;
    await second.close();
    expect(wakeup.isConnected || second.isConnected).toBe(false);
    await expect.poll(() => listeners(db)).toBe(0);
  });
});
