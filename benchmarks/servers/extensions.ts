import { defineExtension, type AnyExtension } from "@parley/a2a/extensions";
import type { StandardSchema } from "@parley/a2a/internal/model/index";

const text: StandardSchema<string> = {
  "~standard": {
    version: 1,
    vendor: "benchmark",
    validate: (value) => (typeof value === "string" ? { value } : { issues: [{ message: "must be a text" }] }),
  },
};

/** Ten extensions with every server hook, metadata and data parts. */
export const tenExtensions: readonly AnyExtension[] = Array.from({ length: 10 }, (_, number) =>
  defineExtension({
    uri: `https://example.com/extensions/benchmark-${number}/v1`,
    description: "Does what extensions do",
    metadata: { request: { by: text }, message: { at: text }, part: { size: text }, artifact: { at: text } },
    data: { form: { mediaType: `application/vnd.benchmark-${number}+json`, schema: text } },
    subStates: { drawing: { state: "TASK_STATE_WORKING" } },
    onActivate: () => true,
    onAccept: (input) => input,
    onTurnStart: (_turn, reads) => reads,
    onAppend: (event) => event,
    onDeliver: (event) => event,
    onTurnEnd: () => {},
  }),
);
