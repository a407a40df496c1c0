import { defineExtension } from "@parley/a2a/extensions";
import { taskSearch } from "@parley/extensions/task-search";
import { timestamp } from "@parley/extensions/timestamp";
import { extensionContract, type Runner } from "@parley/testing";
import { describe, expect, test } from "vitest";
import { notesOf } from "../../packages/testing/test/notes.ts";
import { everyBinding } from "./extension-bindings.ts";

/** Runs the contract of extensions over real sockets: JSON-RPC, REST and gRPC, in 1.0 and 0.3 (A2A 1.0 §4.6). */

const runner: Runner = { describe, it: test, expect };

describe("an extension with a method, which requires another one", () => {
  const base = defineExtension({ uri: "https://example.com/extensions/base/v1", kind: "data" });
  extensionContract(runner, { ...notesOf(base), over: everyBinding() });
});

describe("Timestamp", () => {
  extensionContract(runner, {
    extension: timestamp,
    over: everyBinding(),
    check: ({ events, expect: that }) =>
      that(events.map((event) => typeof event?.ext(timestamp)?.artifact.at)).toEqual([
        "undefined",
        "undefined",
        "string",
        "undefined",
      ]),
  });
});

describe("Task Search", () => {
  extensionContract(runner, {
    extension: taskSearch,
    over: everyBinding(),
    requests: { "tasks/search": { text: "anything" } },
  });
});
