import { describe, expect, test } from "vitest";
import * as z from "zod";
import { defineAgent } from "../../src/agent/index.ts";
import { defineExtension, extensionMethod } from "../../src/extensions/index.ts";
import { extensionContract, type Runner } from "../../src/testing/index.ts";

/** The contract of extensions holds for extensions that keep it, and finds each way to break it. */

const runner: Runner = { describe, it: test, expect };

const stamp = defineExtension({
  uri: "https://example.com/extensions/stamp/v1",
  description: "Says when",
  kind: "data",
  paramsSchema: z.object({ zone: z.string() }),
  params: { zone: "UTC" },
  metadata: {
    message: { at: { key: ["stamp/at", "stamp.at"], schema: z.string().max(30) } },
    request: { who: z.string() },
    part: { size: z.number() },
    artifact: { at: z.string() },
  },
  data: { form: { mediaType: "application/vnd.form+json", schema: z.object({ amount: z.number() }) } },
  onRequest: (request) =>
    "message" in request
      ? { ...request, message: { ...request.message, metadata: { ...request.message.metadata, "stamp/at": "noon" } } }
      : request,
  onEvent: (event, reads) => ({ at: reads.artifact.at, kind: Object.keys(event)[0] }),
  onAccept: (input) => input,
  onTurnStart: (_, reads) => reads,
  onAppend: (event) =>
    event.kind === "artifact"
      ? { ...event, artifact: { ...event.artifact, metadata: { "https://example.com/extensions/stamp/v1/at": "now" } } }
      : event,
  onDeliver: (event) => event,
  onTurnEnd: () => {},
});

describe("an extension of data", () => {
  extensionContract(runner, {
    extension: stamp,
    check({ events, answer, expect: that }) {
      that(answer.task?.ext(stamp)?.kind).toEqual("task");
      that(events.flatMap((event) => event?.ext(stamp)?.at ?? [])).toEqual(["now"]);
    },
  });
});

const notes = defineExtension({
  uri: "https://example.com/extensions/notes/v2",
  kind: "method",
  requires: [stamp.uri],
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

describe("an extension with a method, which requires another one", () => {
  extensionContract(runner, {
    extension: notes,
    required: [stamp],
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
