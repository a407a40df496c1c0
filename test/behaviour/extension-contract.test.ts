import { defineAgent } from "@parley/a2a";
import { defineExtension, extensionMethod } from "@parley/a2a/extensions";
import { taskSearch } from "@parley/a2a/extensions/task-search";
import { timestamp } from "@parley/a2a/extensions/timestamp";
import { extensionContract, type Runner } from "@parley/a2a/testing";
import { describe, expect, test } from "vitest";
import * as z from "zod";
import { everyBinding } from "../extension-bindings.ts";

/** The contract of extensions over real sockets: JSON-RPC, REST and gRPC, in 1.0 and 0.3 (A2A 1.0 §4.6). */

const runner: Runner = { describe, it: test, expect };

describe("an extension with a method, which requires another one", () => {
  const base = defineExtension({ uri: "https://example.com/extensions/base/v1", kind: "data" });
  const notes = defineExtension({
    uri: "https://example.com/extensions/notes/v2",
    kind: "method",
    requires: [base.uri],
    metadata: { message: { id: z.string() } },
    methods: {
      "notes/search": extensionMethod({
        request: z.object({ text: z.string() }),
        response: z.object({ ids: z.array(z.string()) }),
        rest: { method: "POST", path: "/notes:search" },
        grpc: "/example.notes.v2.Notes/Search",
        onCall: ({ text }) => ({ ids: [text] }),
      }),
    },
  });
  extensionContract(runner, {
    extension: notes,
    required: [base],
    over: everyBinding(),
    requests: { "notes/search": { text: "a" } },
    agent: () =>
      defineAgent({
        name: "Notes",
        description: "Takes notes",
        version: "1.0.0",
        skills: [],
        extensions: [notes],
        onMessage: (turn) => turn.reply(turn.ext(notes)?.message.id ?? "none"),
      }),
    message: (active) => ({ parts: [{ text: "Hi" }], ...(active && { metadata: { [`${notes.uri}/id`]: "n" } }) }),
    check: ({ answer, expect: that }) => that(answer.message?.parts).toEqual([{ text: "n" }]),
  });
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
