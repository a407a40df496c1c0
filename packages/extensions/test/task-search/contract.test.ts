import { describe, expect, it } from "vitest";
import { taskSearch } from "../../src/task-search/index.ts";
import { extensionContract } from "@parley/testing";

/** Task Search keeps the contract of extensions (A2A 1.0 §4.6). */
extensionContract(
  { describe, it, expect },
  { extension: taskSearch, requests: { "tasks/search": { text: "anything" } } },
);
