import { describe, expect, it } from "vitest";
import { memoryStore } from "@parley/a2a/store";
import { storeContract } from "@parley/a2a/testing";

describe("memoryStore", () => storeContract({ describe, it, expect }, { create: () => memoryStore() }));
