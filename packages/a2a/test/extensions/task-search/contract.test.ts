import { describe, expect, it } from "vitest";
import { taskSearch } from "../../../src/extensions/task-search/index.ts";
import { extensionContract } from "../../../src/testing/index.ts";

/** Task Search keeps the contract of extensions (A2A 1.0 §4.6). */
extensionContract(
  { describe, it, expect },
  { extension: taskSearch, requests: { "tasks/search": { text: "anything" } } },
);
