import { storeContract } from "@parley/testing";
import { durableObjectStore, type ObjectStorage } from "@parley/sql/durable-object";
import type { Store } from "@parley/server";

/** Runs the contract of stores in Durable Objects, each case in its own object. `/` lists the cases, `/?case=` runs one case. */

interface Env {
  readonly STORES: { idFromName(name: string): unknown; get(id: unknown): { fetch(url: string): Promise<Response> } };
}

type Storage = ObjectStorage & { deleteAll(): Promise<void> };

interface Case {
  readonly name: string;
  readonly body: () => Promise<void>;
}

/** Returns the cases of the contract, with stores in the storage of an object. */
function casesOf(storage: Storage | undefined): readonly Case[] {
  const cases: Case[] = [];
  const path: string[] = [];
  const runner = {
    describe(name: string, body: () => void) {
      path.push(name);
      body();
      path.pop();
    },
    it: (name: string, body: () => Promise<void>) => void cases.push({ name: [...path, name].join(": "), body }),
  };
  const open = (): Store => {
    if (storage === undefined) throw new Error("There is no storage");
    return durableObjectStore(storage);
  };
  storeContract(runner, {
    async create() {
      await storage?.deleteAll();
      return open();
    },
    async reopen(store) {
      await store.close();
      return open();
    },
    // Opens a store without closing the previous one, because an object is evicted without notice.
    crash: open,
    histories: 30,
  });
  return cases;
}

export class Stores {
  readonly #storage: Storage;

  constructor({ storage }: { storage: Storage }) {
    this.#storage = storage;
  }

  async fetch(request: Request): Promise<Response> {
    const wanted = new URL(request.url).searchParams.get("case");
    const found = casesOf(this.#storage).find(({ name }) => name === wanted);
    try {
      if (found === undefined) throw new Error(`There is no case ${wanted}`);
      await found.body();
      return Response.json({ passed: true });
    } catch (error) {
      return Response.json({ passed: false, error: error instanceof Error ? (error.stack ?? "") : String(error) });
    }
  }

  /** Required because the store sets alarms when the contract stores runs. */
  alarm(): void {}
}

export default {
  async fetch({ url }: Request, { STORES }: Env): Promise<Response> {
    const name = new URL(url).searchParams.get("case");
    if (name === null) return Response.json(casesOf(undefined).map((each) => each.name));
    return STORES.get(STORES.idFromName(name)).fetch(url);
  },
};
