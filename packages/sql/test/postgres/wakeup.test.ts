import { wakeupContract } from "@parley/a2a/testing";
import type { Wakeup } from "@parley/a2a/store";
import { describe, expect, it } from "vitest";
import { useDatabase } from "../../../../test/postgres/database.ts";
import { connect } from "../../src/postgres/connect.ts";
import { notifyWakeup, type NotifyWakeupOptions } from "../../src/postgres/wakeup.ts";

const database = useDatabase();

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
