import { connect } from "@nats-io/transport-node";
import type { Logger } from "@parley/a2a/protocol";
import type { LogFields } from "@parley/a2a/internal/base/index";
import { wakeupContract } from "@parley/testing";
import { natsWakeup } from "@parley/nats";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { reservePort } from "../../../test/ports.ts";
import { startNats, type NatsServer } from "../../../test/postgres/nats.ts";

let server: NatsServer;

beforeAll(async () => {
  server = await startNats();
});
afterAll(() => server.stop());

const restart = async (): Promise<void> => {
  await server.stop();
  await server.start();
};

describe("the contract of wake-ups, over NATS", () => {
  wakeupContract({ describe, it, expect }, { open: () => natsWakeup({ servers: server.url }), disconnect: restart });
});

describe("the contract of wake-ups, over a connection of the program", () => {
  wakeupContract(
    { describe, it, expect },
    { open: async () => natsWakeup({ connection: await connect({ servers: server.url }) }) },
  );
});

describe("wake-ups over NATS", () => {
  it("leave a connection of the program open", async () => {
    const connection = await connect({ servers: server.url });
    const wakeup = await natsWakeup({ connection });
    await wakeup.close();
    expect(connection.isClosed()).toBe(false);
    await connection.close();
    await expect(natsWakeup({ connection })).rejects.toMatchObject({ code: "Unavailable" });
  });

  it("report that they are unavailable when the program closes its connection", async () => {
    const connection = await connect({ servers: server.url });
    const wakeup = await natsWakeup({ connection });
    expect(wakeup.isConnected).toBe(true);
    await connection.close();
    await expect.poll(() => wakeup.isConnected).toBe(false);
    wakeup.publish(["lost"]);
    await wakeup.close();
  });

  it("begin without a server, and connect when one starts", async () => {
    const port = await reservePort();
    const lines: string[] = [];
    const log = (message: string, _fields?: LogFields): void => void lines.push(message);
    const logger: Logger = { debug: () => undefined, info: log, warn: log, error: log };
    const wakeup = await natsWakeup({ servers: `nats://127.0.0.1:${port}`, connectTimeout: 1000, logger });
    const listener = vi.fn<(taskId: string | undefined) => void>();
    wakeup.subscribe(listener);
    expect(wakeup.isConnected).toBe(false);
    wakeup.publish(["lost"]);
    expect(lines).toEqual([expect.stringContaining("readers poll")]);
    const late = await startNats(port);
    try {
      await expect.poll(() => wakeup.isConnected).toBe(true);
      // Nothing is known of earlier messages.
      expect(listener).toHaveBeenCalledWith(undefined);
      expect(lines[1]).toContain("again");
    } finally {
      await wakeup.close();
      await late.stop();
    }
  });

  it("reconnect after a server has rejected their credentials for a while", async () => {
    const port = await reservePort();
    const folder = mkdtempSync(join(tmpdir(), "parley-nats-"));
    const log = join(folder, "log");
    const start = (password: string): Promise<NatsServer> =>
      startNats(port, ["--user", "parley", "--pass", password, "-l", log]);
    let current = await start("first-of-nobody-0123456789");
    const connection = { user: "parley", pass: "first-of-nobody-0123456789", reconnectTimeWait: 10 };
    const wakeup = await natsWakeup({ servers: current.url, connection });
    try {
      expect(wakeup.isConnected).toBe(true);
      await current.stop();
      current = await start("second-of-nobody-0123456789");
      await expect.poll(() => wakeup.isConnected).toBe(false);
      // By default the NATS client gives up after two rejections.
      const refusals = (): number => readFileSync(log, "utf8").split("authentication error").length - 1;
      await expect.poll(refusals).toBeGreaterThan(3);
      await current.stop();
      current = await start("first-of-nobody-0123456789");
      await expect.poll(() => wakeup.isConnected).toBe(true);
    } finally {
      await wakeup.close();
      await current.stop();
      rmSync(folder, { recursive: true });
    }
  });

  it.each(["a b", "", "a..b", "a.*", ">"])("reject the subject %j at once", async (subject) => {
    await expect(natsWakeup({ servers: server.url, subject })).rejects.toMatchObject({ code: "Unavailable" });
  });

  it("separate clusters by subject, and ignore other publishers' messages", async () => {
    const one = await natsWakeup({ servers: server.url, subject: "one" });
    const other = await natsWakeup({ servers: server.url, subject: "other" });
    const stranger = await connect({ servers: server.url });
    const told: (string | undefined)[] = [];
    other.subscribe((taskId) => told.push(taskId));
    try {
      one.publish(["a"]);
      for (const text of ["", "{}", "[1]", '["x",{"y":1}]', "\u0000".repeat(100)]) stranger.publish("other", text);
      stranger.publish("other", JSON.stringify(["stranger", "last"]));
      await expect.poll(() => told).toEqual(["last"]);
    } finally {
      await Promise.all([one.close(), other.close(), stranger.close()]);
    }
  });
});
