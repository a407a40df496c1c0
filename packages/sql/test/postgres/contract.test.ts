import { afterAll, describe, expect, it } from "vitest";
import type { Store } from "@parley/server";
import { storeContract, type StoreContractOptions } from "@parley/testing";
import { postgresStore } from "@parley/sql/postgres";
import { useDatabase } from "../../../../test/postgres/database.ts";

const database = useDatabase();
const fallen: Store[] = [];
afterAll(async () => {
  await Promise.all(fallen.map((store) => store.close()));
});

let schemas = 0;
const opened = new Map<Store, string>();

async function open(schema: string): Promise<Store> {
  const store = await postgresStore({ database: database().url, schema, connections: 4 });
  opened.set(store, schema);
  return store;
}

function schemaOf(store: Store): string {
  return opened.get(store) ?? "";
}

const onServer: StoreContractOptions = {
  create: () => open(`s${(schemas += 1)}`),
  async reopen(store) {
    await store.close();
    return open(schemaOf(store));
  },
  share: (store) => open(schemaOf(store)),
  // The old store keeps its connections, like a killed process whose end the server has not noticed yet.
  crash(store) {
    fallen.push(store);
    return open(schemaOf(store));
  },
  // Only a few, because each of their steps waits for a disk.
  histories: 5,
};

describe("postgresStore", () => {
  storeContract({ describe, it, expect }, onServer);
});
