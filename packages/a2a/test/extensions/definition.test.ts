import * as z from "zod";
import { describe, expect, test } from "vitest";
import { cycleIn, defineExtension } from "../../src/extensions/index.ts";
import { createHandler } from "@parley/server/internal/handler";
import { defineAgent } from "@parley/server/internal/agent/index";
import { memoryStore } from "@parley/server/internal/store/index";
import type { A2AError } from "../../src/model/index.ts";
import type { AnyExtension } from "../../src/protocol/index.ts";

const uri = "https://example.com/extensions/toy/v1";
const schema = z.string();

/** Returns a method that is valid except for this change. */
function method(change: object = {}): object {
  return { request: schema, response: schema, rest: { method: "POST", path: "/a:b" }, grpc: "/a.b/C", ...change };
}

/** Returns the invalid fields of a definition, with their problems. */
function refusal(definition: object): Readonly<Record<string, string>> {
  try {
    defineExtension(definition as never);
  } catch (thrown) {
    const { code, fields } = thrown as A2AError;
    expect(code).toBe("InvalidParams");
    return Object.fromEntries((fields ?? []).map(({ field, description }) => [field, description]));
  }
  return {};
}

describe("defineExtension() (A2A 1.0 §4.6)", () => {
  test("accepts a valid definition unchanged, and freezes it", () => {
    const onAppend = <E>(event: E): E => event;
    const definition = {
      uri: "urn:example:ext:v1",
      kind: "state",
      required: true,
      requires: ["https://example.com/extensions/other/v1?a=1&b=%2C#x"],
      params: { modes: ["a"] },
      paramsSchema: z.object({ modes: z.array(z.string()) }),
      metadata: { message: { a: schema, b: { key: ["k", "former-k"], schema } }, part: {} },
      data: { form: { mediaType: "application/x+json; v=1", schema }, other: { matches: () => true, schema } },
      subStates: {
        drawing: { state: "TASK_STATE_WORKING" },
        done: { state: "TASK_STATE_COMPLETED", key: "k", value: 1 },
      },
      onAppend,
    } as const;
    const extension = defineExtension(definition);
    expect(extension).toEqual(definition);
    expect(Object.isFrozen(extension)).toBe(true);
  });

  test.each([
    ["none", undefined],
    ["an empty one", ""],
    ["one that is not text", 5],
    ["a relative one", "extensions/toy"],
    ["one without a scheme", "//example.com/toy"],
    ["a URI with a comma, which would be two in a header", "https://example.com/a,b"],
    ["one with a space", "https://example.com/a b"],
    ["one with a line break", "https://example.com/a\r\nx: y"],
    ["one with a character that is not ASCII", "https://example.com/ä"],
    ["one with half an escape", "https://example.com/%2"],
    ["one that is too long for a header", `https://example.com/${"a".repeat(2048)}`],
  ])("rejects as URI: %s", (_, wrong) => {
    expect(Object.keys(refusal({ uri: wrong }))).toEqual(["uri"]);
  });

  test.each<[string, object, string]>([
    ["an unknown kind", { kind: "metadata" }, "kind"],
    ["`required` that is not a boolean", { required: "yes" }, "required"],
    ["`required` for the kind data", { kind: "data", required: true }, "required"],
    ["methods for the kind data", { kind: "data", methods: { "a/b": {} } }, "methods"],
    ["a description that is not text", { description: 5 }, "description"],
    ["params that are not an object", { params: [1] }, "params"],
    ["params that are not JSON", { params: { a: 1n } }, "params"],
    ["`wakeRows` that is not a boolean", { wakeRows: "yes" }, "wakeRows"],
    ["`searchesTasks` that is not a boolean", { searchesTasks: 5 }, "searchesTasks"],
    [
      "`volatile` that is not a boolean",
      { metadata: { message: { a: { schema, volatile: "yes" } } } },
      "metadata.message.a.volatile",
    ],
    ["`__proto__` as a name", { metadata: { message: { ["__proto__"]: schema } } }, "metadata.message.__proto__"],
    ["`__proto__` as a name of data", { data: { ["__proto__"]: { mediaType: "a/b", schema } } }, "data.__proto__"],
    [
      "`__proto__` as a sub-state",
      { subStates: { ["__proto__"]: { state: "TASK_STATE_WORKING" } } },
      "subStates.__proto__",
    ],
    [
      "one media type twice, with and without parameters",
      { data: { a: { mediaType: "a/b", schema }, b: { mediaType: "A/B; c=d", schema } } },
      "data.b.mediaType",
    ],
    ["params that break their schema", { params: { a: 1 }, paramsSchema: z.object({ a: z.string() }) }, "params.a"],
    ["a schema of no library", { paramsSchema: () => true }, "paramsSchema"],
    ["`requires` that is not a list", { requires: uri }, "requires"],
    ["a wrong URI in `requires`", { requires: ["other"] }, "requires[0]"],
    ["itself in `requires`", { requires: [uri] }, "requires[0]"],
    ["one URI twice in `requires`", { requires: ["urn:x:y", "urn:x:y"] }, "requires[1]"],
    ["metadata that is not an object", { metadata: [] }, "metadata"],
    ["an unknown place", { metadata: { messages: { a: schema } } }, "metadata.messages"],
    ["a place without fields", { metadata: { message: schema.parse } }, "metadata.message"],
    ["a field without a schema", { metadata: { message: { a: { key: "k" } } } }, "metadata.message.a"],
    ["a field without a name", { metadata: { message: { "": schema } } }, "metadata.message."],
    ["an empty key", { metadata: { message: { a: { key: "", schema } } } }, "metadata.message.a.key"],
    ["no key in a list", { metadata: { message: { a: { key: [], schema } } } }, "metadata.message.a.key"],
    ["the key __proto__", { metadata: { message: { a: { key: "__proto__", schema } } } }, "metadata.message.a.key"],
    [
      "two fields with one key",
      { metadata: { part: { a: { key: "k", schema }, b: { key: ["x", "k"], schema } } } },
      "metadata.part.b.key",
    ],
    ["data without a media type", { data: { form: { schema } } }, "data.form"],
    ["data without a schema", { data: { form: { mediaType: "a/b" } } }, "data.form.schema"],
    ["a text that is not a media type", { data: { form: { mediaType: "form", schema } } }, "data.form.mediaType"],
    [
      "two data parts with one media type",
      { data: { a: { mediaType: "a/b", schema }, b: { mediaType: "A/B", schema } } },
      "data.b.mediaType",
    ],
    ["`matches` that is not a function", { data: { form: { matches: /x/, schema } } }, "data.form.matches"],
    ["a sub-state of no state", { subStates: { drawing: {} } }, "subStates.drawing.state"],
    [
      "a sub-state of an unset state",
      { subStates: { drawing: { state: "TASK_STATE_UNSPECIFIED" } } },
      "subStates.drawing.state",
    ],
    [
      "a sub-state whose value is not a plain one",
      { subStates: { drawing: { state: "TASK_STATE_WORKING", value: {} } } },
      "subStates.drawing.value",
    ],
    [
      "two sub-states that are the same",
      { subStates: { a: { state: "TASK_STATE_WORKING", key: "k" }, b: { state: "TASK_STATE_WORKING", key: "k" } } },
      "subStates.b",
    ],
    [
      "`wakeRows` with a URI that rows cannot have as their name",
      { uri: `urn:x:${"a".repeat(256)}`, wakeRows: true },
      "wakeRows",
    ],
    ["a hook that is not a function", { onAppend: {} }, "onAppend"],
    ["methods that are not an object", { methods: "notes/find" }, "methods"],
    ["a method without a slash in its name", { methods: { find: method() } }, 'methods["find"]'],
    ["not a method", { methods: { "notes/find": null } }, 'methods["notes/find"]'],
    [
      "a method without `rest`",
      { methods: { "notes/find": method({ rest: undefined }) } },
      'methods["notes/find"].rest',
    ],
    [
      "a method with a path of another form",
      { methods: { "notes/find": method({ rest: { method: "POST", path: "notes" } }) } },
      'methods["notes/find"].rest.path',
    ],
    [
      "an unknown HTTP method",
      { methods: { "notes/find": method({ rest: { method: "PUT", path: "/notes" } }) } },
      'methods["notes/find"].rest.method',
    ],
    [
      "a method without `grpc`",
      { methods: { "notes/find": method({ grpc: undefined }) } },
      'methods["notes/find"].grpc',
    ],
    [
      "a method without a schema",
      { methods: { "notes/find": method({ response: undefined }) } },
      'methods["notes/find"].response',
    ],
    [
      "a JSON-RPC name that is reserved",
      { methods: { "notes/find": method({ jsonrpc: "rpc.find" }) } },
      'methods["notes/find"].jsonrpc',
    ],
  ])("rejects %s, and names the field", (_, wrong, field) => {
    expect(Object.keys(refusal({ uri, ...wrong }))).toEqual([field]);
  });

  test.each<[string, object, string, string]>([
    ["of the extension", { onappend: () => {} }, "onappend", "onAppend"],
    ["of the extension", { require: ["urn:a:b"] }, "require", "required or requires"],
    ["of the extension", { metaData: {} }, "metaData", "metadata"],
    ["of the extension", { onAccpet: undefined }, "onAccpet", "onAccept"],
    ["of a field", { metadata: { part: { a: { schema, keys: "k" } } } }, "metadata.part.a.keys", "key"],
    ["of data", { data: { a: { schema, mediatype: "a/b", matches: () => true } } }, "data.a.mediatype", "mediaType"],
    ["of a sub-state", { subStates: { a: { state: "TASK_STATE_WORKING", vaule: 1 } } }, "subStates.a.vaule", "value"],
    [
      "of a method",
      { methods: { "notes/find": method({ oncall: () => ({}) }) } },
      'methods["notes/find"].oncall',
      "onCall",
    ],
  ])("rejects a misspelt member %s, and suggests the right name", (_, wrong, field, meant) => {
    expect(refusal({ uri, ...wrong })).toEqual({ [field]: `is unknown: did you mean ${meant}?` });
  });

  test("rejects an unknown member that resembles no other", () => {
    expect(refusal({ uri, colour: "blue" })).toEqual({ colour: "is not a member of a definition" });
  });

  test("explains how a method without `rest` must say so", () => {
    expect(refusal({ uri, methods: { "notes/find": method({ rest: undefined }) } })).toEqual({
      'methods["notes/find"].rest':
        'must have the route of the method over HTTP+JSON, such as { method: "POST", path: "/tasks:search" }',
    });
  });

  test("rejects values that are not objects", () => {
    expect(Object.keys(refusal(null as never))).toEqual(["uri"]);
  });

  test("lists everything that is wrong at once", () => {
    expect(() => defineExtension({ uri: "a b", kind: "x" } as never)).toThrow(
      "The extension a b is invalid: uri must be an absolute URI without commas and spaces; kind must be one of data, profile, method, state",
    );
  });
});

describe("the extensions of a server", () => {
  function serve(
    of: readonly (readonly AnyExtension[])[],
    all: readonly AnyExtension[] = [],
    declared: readonly string[] = [],
  ) {
    const agents = of.map((extensions, at) => ({
      path: `/${at}`,
      agent: defineAgent({
        name: `Agent ${at}`,
        description: "Says yes.",
        version: "1",
        skills: [],
        capabilities: { extensions: declared.map((each) => ({ uri: each })) },
        extensions,
        onMessage: (turn) => turn.reply("yes"),
      }),
    }));
    const handler = createHandler(agents, { publicUrl: "https://a.example", store: memoryStore(), extensions: all });
    return handler.agents.map(({ card }) =>
      (card.capabilities.extensions ?? []).filter((each) => !each.uri?.startsWith("urn:parley:")),
    );
  }
  const base: AnyExtension = { uri: "urn:example:base", description: "Base", params: { a: 1 } };
  const above: AnyExtension = { uri: "urn:example:above", requires: [base.uri], required: true };

  test("are on the cards of their agents, once; the server's are on all cards", () => {
    const shown = { uri: base.uri, description: "Base", params: { a: 1 } };
    expect(serve([[base], []])).toEqual([[shown], []]);
    expect(serve([[base], []], [base])).toEqual([[shown], [shown]]);
    expect(serve([[above], []], [base])).toEqual([[{ uri: above.uri, required: true }, shown], [shown]]);
  });

  test.each<[string, readonly (readonly AnyExtension[])[], readonly AnyExtension[], RegExp]>([
    [
      "one that is wrong",
      [[{ uri: "x" }]],
      [],
      /^The extension x is invalid: extensions\[0\]\.uri must be an absolute URI/,
    ],
    [
      "one only by its URI",
      [["urn:a" as never]],
      [],
      /^The extension is invalid: extensions\[0\] must be an object made by/,
    ],
    ["a value in place of a list", [base as never], [], /: extensions must be a list, such as \[timestamp\]$/],
    ["a value in place of the list of the server", [[]], base as never, /: extensions must be a list, such as/],
    [
      "two values with one URI, at different agents",
      [[base], [{ ...base }]],
      [],
      /one value for each URI, and urn:example:base has two/,
    ],
    ["two values with one URI, at an agent and the server", [[base]], [{ uri: base.uri }], /urn:example:base has two/],
    [
      "an extension whose dependency only another agent has",
      [[above], [base]],
      [],
      /urn:example:above, which requires urn:example:base: the agent "Agent 0" has no such extension$/,
    ],
    [
      "two that require each other",
      [
        [
          { uri: "urn:a", requires: ["urn:b"] },
          { uri: "urn:b", requires: ["urn:a"] },
        ],
      ],
      [],
      /must not require each other: urn:a requires urn:b requires urn:a$/,
    ],
  ])("are rejected when the server is created: %s", (_, of, all, message) => {
    expect(() => serve(of, all)).toThrow(message);
  });

  test("may require one that the card declares by hand", () => {
    expect(serve([[above]], [], [base.uri])[0]?.map((each) => each.uri)).toEqual([base.uri, above.uri]);
  });

  test("have a cycle only if one leads back to itself, however many share a requirement", () => {
    const chain = Array.from({ length: 200 }, (_, at) => ({
      uri: `urn:e:${at}`,
      requires: Array.from({ length: at }, (__, before) => `urn:e:${before}`),
    }));
    expect(cycleIn(chain)).toBeUndefined();
    expect(
      cycleIn([...chain, { uri: "urn:z", requires: ["urn:y"] }, { uri: "urn:y", requires: ["urn:e:7", "urn:z"] }]),
    ).toEqual(["urn:z", "urn:y", "urn:z"]);
  });
});
