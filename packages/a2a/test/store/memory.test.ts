import { describe, expect, it } from "vitest";
import { memoryStore } from "@parley/a2a";
import { storeContract } from "@parley/a2a/testing";
import { largeTasks } from "./large.ts";
import { times } from "../../../../test/counts.ts";
import { likeTheReference } from "./properties.ts";

describe("memoryStore", () => {
  storeContract({ describe, it, expect }, { create: () => memoryStore() });

  largeTasks(async (bounds) => memoryStore(bounds));

  it("cannot be told from the reference, whatever is stored, canceled, swept and read (property)", async () => {
    await likeTheReference({ create: async () => memoryStore(), crash: async (store) => store }, times(100, 300));
  });
});
