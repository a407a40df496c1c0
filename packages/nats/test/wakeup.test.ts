import { connect } from "@nats-io/transport-node";
import type { LogFields, Logger } from "@parley/a2a";
import { wakeupContract } from "@parley/a2a/testing";
import { natsWakeup } from "@parley/nats";
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

  it("say that they are gone when the program closes its connection", async () => {
    const connection = await connect({ servers: server.url });
    const wakeup = await natsWakeup({ connection });
    expect(wakeup.isConnected).toBe(true);
    await connection.close();
    await expect.poll(() => wakeup.isConnected).toBe(false);
    wakeup.publish(["lost"]);
    await wakeup.close();
  });

  it("begin without a server, and come when there is one", async () => {
    const port = await reservePort();
    const lines: string[] = [];
    const log = (message: string, _fields?: LogFields): void => void lines.push(message);
    const logger: Logger = { debug: () => undefined, info: log, warn: log, error: log };
    const wakeup = await natsWakeup({ servers: `nats://127.0.0.1:${port}`, connectTimeout: 1000, logger });
    const listener = vi.fn<(taskId: string | undefined) => void>();
    wakeup.subscribe(listener);
    expect(wakeup.isConnected).toBe(false);
    wakeup.publish(["lost"]);
    expect(lines).toEqual([expect.stringContaining("Readers poll")]);
    const late = await startNats(port);
    try {
      await expect.poll(() => wakeup.isConnected).toBe(true);
      // Nobody knows what was published before.
      expect(listener).toHaveBeenCalledWith(undefined);
      expect(lines[1]).toContain("again");
    } finally {
      await wakeup.close();
      await late.stop();
    }
  });

  it("tell apart clusters by their subject, and ignore what others publish there", async () => {
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
