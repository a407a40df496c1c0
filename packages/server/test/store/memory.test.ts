import { describe, expect, it } from "vitest";
import { memoryStore } from "@parley/server";
import { storeContract } from "@parley/testing";
import { times } from "../../../../test/counts.ts";
import { largeTasks } from "./large.ts";

describe("memoryStore", () => {
  storeContract({ describe, it, expect }, { create: () => memoryStore(), histories: times(100, 300) });

  largeTasks(async (bounds) => memoryStore(bounds));
});
