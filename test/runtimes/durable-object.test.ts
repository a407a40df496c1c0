import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { storeContract } from "@parley/testing";
import { memoryStore } from "@parley/server";
import { WorkerdWorker } from "./workerd.ts";

/** Returns the names of the contract cases for a reopenable store, as declared in this process. */
function names(): readonly string[] {
  const found: string[] = [];
  const path: string[] = [];
  storeContract(
    {
      describe(name, body) {
        path.push(name);
        body();
        path.pop();
      },
      it: (name) => void found.push([...path, name].join(": ")),
    },
    { create: () => memoryStore(), reopen: async (store) => store },
  );
  return found;
}

describe("the store for Durable Objects passes the contract of stores, in workerd", () => {
  let worker: WorkerdWorker;
  beforeAll(async () => {
    worker = await WorkerdWorker.create("store-worker.ts", ["Stores"]);
    await worker.start();
  });
  afterAll(() => worker.remove());

  it("the worker declares all cases", async () => {
    expect(await (await fetch(worker.url)).json()).toEqual(names());
  });

  it.each(names())("%s", async (name) => {
    const answer = await fetch(`${worker.url}/?case=${encodeURIComponent(name)}`);
    expect(await answer.json()).toEqual({ passed: true });
  });
});
