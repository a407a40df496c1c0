import { describe, expect, test } from "vitest";
import * as z from "zod";
import { defineAgent } from "@parley/server/internal/agent/index";
import { defineExtension, extensionMethod } from "@parley/a2a/internal/extensions/index";
import type { StandardSchema } from "@parley/a2a/internal/model/index";
import type { AnyExtension } from "@parley/a2a/internal/protocol/index";
import { extensionContract, type ExtensionContractOptions } from "../src/index.ts";

/** The cases that an extension fails. */
async function failures<X extends AnyExtension>(options: ExtensionContractOptions<X>): Promise<readonly string[]> {
  const cases: { readonly name: string; readonly body: () => Promise<void> }[] = [];
  extensionContract({ describe: (_, body) => body(), it: (name, body) => cases.push({ name, body }) }, options);
  const failed = new Set<string>();
  for (const { name, body } of cases) await body().catch(() => failed.add(name));
  return [...failed];
}

describe("violations of the contract are found", () => {
  const uri = "https://example.com/extensions/broken/v1";
  const at = `${uri}/at`;
  const metadata = { message: { at: z.string() }, artifact: { at: z.string() } };
  let count = 0;
  let busy = false;
  const seen: string[] = [];

  test.each<[what: string, options: ExtensionContractOptions<AnyExtension>, failed: RegExp]>([
    ["an invalid URI", { extension: { uri: "broken" } }, /^is declared in the card/],
    [
      "an agent that uses it while inactive",
      {
        extension: { uri, metadata },
        agent: () =>
          defineAgent({
            name: "Eager",
            description: "",
            version: "1",
            skills: [],
            onMessage: (turn) => turn.reply({ text: "x", metadata: { [at]: "now" } }),
          }),
      },
      /^is off unless/,
    ],
    [
      "a hook that returns another message",
      { extension: { uri, onRequest: () => ({ message: { messageId: "1", role: "ROLE_USER", parts: [] } }) } },
      /^is active if requested/,
    ],
    [
      "a check that fails",
      {
        extension: { uri },
        check: () => {
          throw new Error("nothing there");
        },
      },
      /^is active if requested/,
    ],
    ["a required extension that is missing", { extension: { uri, requires: ["urn:other"] } }, /^is active /],
    [
      "a method that returns an invalid response",
      {
        extension: defineExtension({
          uri,
          methods: {
            "a/b": extensionMethod({
              request: z.object({}),
              response: z.object({ n: z.number() }),
              rest: { method: "POST", path: "/a:b" },
              grpc: "/a.B/C",
              onCall: () => ({ n: "5" as never }),
            }),
          },
        }),
        requests: { "a/b": {} },
      },
      /^answers a\/b/,
    ],
    [
      "a method that reveals all callers' tasks",
      {
        extension: defineExtension({
          uri,
          onTurnStart: ({ taskId }) => void seen.push(taskId),
          methods: {
            "a/b": extensionMethod({
              request: z.object({}),
              response: z.object({ ids: z.array(z.string()) }),
              rest: { method: "POST", path: "/a:b" },
              grpc: "/a.B/C",
              onCall: () => ({ ids: seen }),
            }),
          },
        }),
        requests: { "a/b": {} },
      },
      /^a\/b reveals nothing of other callers/,
    ],
    [
      "a hook that fails a task at its last event",
      {
        extension: {
          uri,
          kind: "profile",
          onAppend: (event) => (event.kind === "artifact" ? ({ ...event, mood: "calm" } as never) : event),
        },
      },
      /^is active if requested/,
    ],
    [
      "data that violates its own schema",
      {
        extension: {
          uri,
          kind: "data",
          metadata,
          onAppend: (event) =>
            event.kind === "artifact" ? { ...event, artifact: { ...event.artifact, metadata: { [at]: 5 } } } : event,
        },
      },
      /^is active if requested/,
    ],
    [
      "a schema that returns a promise",
      { extension: { uri, metadata: { message: { at: later() } } } },
      /^checks input to an agent/,
    ],
    [
      "an `onEvent` that trusts its input",
      {
        extension: defineExtension({
          uri,
          onEvent: ({ task }) => (task?.metadata?.[at] as string | undefined)?.toUpperCase(),
          metadata: { task: { at: z.string() } },
        }),
      },
      /^tolerates anything that an agent may send/,
    ],
    [
      "an `onEvent` of kind data that trusts its input",
      {
        extension: defineExtension({
          uri,
          kind: "data",
          onEvent: ({ task }) => (task?.metadata?.[at] as string | undefined)?.toUpperCase(),
          metadata: { task: { at: z.string() } },
        }),
      },
      /^tolerates anything that an agent may send/,
    ],
    [
      "an `onRequest` that trusts params",
      {
        extension: defineExtension({
          uri,
          params: { key: "k" },
          paramsSchema: z.object({ key: z.string() }),
          onRequest: (request, { params }) => ((params as { key: string }).key === "" ? request : request),
        }),
      },
      /^tolerates unexpected params/,
    ],
    [
      "an `onDeliver` that counts",
      {
        extension: {
          uri,
          onDeliver: (event) => (event.task ? { task: { ...event.task, metadata: { [at]: String(count++) } } } : event),
        },
      },
      /^`onDeliver` depends/,
    ],
    [
      "a hook that allows only one call at a time",
      {
        extension: {
          uri,
          async onAccept(input) {
            if (busy) throw new Error("busy");
            busy = true;
            await new Promise((resolve) => setTimeout(resolve, 5));
            busy = false;
            return input;
          },
        },
      },
      /^serve two callers/,
    ],
  ])("%s", async (_, options, failed) => {
    const found = await failures(options);
    expect(found).toContainEqual(expect.stringMatching(failed));
  });
});

/** A schema that cannot answer synchronously. */
function later(): StandardSchema<string> {
  const validate = (): Promise<{ readonly value: string }> => Promise.resolve({ value: "" });
  return { "~standard": { version: 1, vendor: "test", validate } };
}
