import { describe, expect, test } from "vitest";
import * as z from "zod";
import { defineExtension } from "@parley/a2a/internal/extensions/index";
import { extensionContract, type Runner } from "../src/index.ts";
import { notesOf } from "./notes.ts";

/** The contract of extensions passes for valid extensions, and detects each violation. */

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

describe("an extension with a method, which requires another one", () => {
  extensionContract(runner, notesOf(stamp));
});
