import * as z from "zod";
import { defineAgent } from "@parley/server/internal/agent/index";
import { defineExtension, extensionMethod } from "@parley/a2a/internal/extensions/index";
import type { AnyExtension } from "@parley/a2a/internal/protocol/index";
import type { ExtensionContractOptions } from "../src/index.ts";

/** The contract's input for an extension with a method that requires another extension. */
export function notesOf(required: AnyExtension): ExtensionContractOptions<AnyExtension> {
  const notes = defineExtension({
    uri: "https://example.com/extensions/notes/v2",
    kind: "method",
    requires: [required.uri],
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
  return {
    extension: notes,
    required: [required],
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
  };
}
