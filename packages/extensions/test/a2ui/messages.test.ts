import { A2uiMessageSchema as A2uiMessageSchema08 } from "@a2ui/web_core/v0_8";
import { A2uiClientMessageSchema, A2uiMessageSchema } from "@a2ui/web_core/v0_9";
import { describe, expect, test } from "vitest";
import { clientMessage, serverMessage } from "../../src/a2ui/schemas.ts";
import type { A2uiVersion } from "../../src/a2ui/messages.ts";

/* The message schemas of A2UI: specification/VERSION/json/server_to_client.json and client_to_server.json. */

const catalogId = "https://example.com/catalog";
const text = { id: "root", component: "Text", text: "Hello" };
const text08 = { id: "root", component: { Text: { text: { literalString: "Hello" } } } };
const action = {
  name: "submit",
  surfaceId: "main",
  sourceComponentId: "button",
  timestamp: "2026-01-15T12:00:00Z",
  context: { email: "ada@example.com" },
};

/** A message, with the path of its error; without one it is valid. */
type Case = readonly [title: string, message: unknown, path?: string];

const server09: readonly Case[] = [
  ["createSurface", { version: "v0.9", createSurface: { surfaceId: "main", catalogId } }],
  ["a theme", { version: "v0.9", createSurface: { surfaceId: "main", catalogId, theme: { primaryColor: "#f00" } } }],
  ["sendDataModel", { version: "v0.9", createSurface: { surfaceId: "main", catalogId, sendDataModel: true } }],
  ["updateComponents", { version: "v0.9", updateComponents: { surfaceId: "main", components: [text] } }],
  ["a value", { version: "v0.9", updateDataModel: { surfaceId: "main", path: "/a", value: [1, null, "x"] } }],
  ["no value", { version: "v0.9", updateDataModel: { surfaceId: "main" } }],
  ["null as value", { version: "v0.9", updateDataModel: { surfaceId: "main", path: "/a", value: null } }],
  ["deleteSurface", { version: "v0.9", deleteSurface: { surfaceId: "main" } }],
  ["no version", { deleteSurface: { surfaceId: "main" } }, "/version"],
  ["a version that is not known", { version: "v0.7", deleteSurface: { surfaceId: "main" } }, "/version"],
  ["two kinds", { version: "v0.9", deleteSurface: { surfaceId: "a" }, updateDataModel: { surfaceId: "a" } }, ""],
  ["no kind", { version: "v0.9" }, ""],
  ["a kind of 0.8", { version: "v0.9", surfaceUpdate: { surfaceId: "a", components: [text08] } }, ""],
  ["no catalog", { version: "v0.9", createSurface: { surfaceId: "main" } }, "/createSurface/catalogId"],
  ["a number as id", { version: "v0.9", deleteSurface: { surfaceId: 1 } }, "/deleteSurface/surfaceId"],
  [
    "a field that is not there",
    { version: "v0.9", createSurface: { surfaceId: "a", catalogId, root: "x" } },
    "/createSurface/root",
  ],
  ["a field beside it", { version: "v0.9", deleteSurface: { surfaceId: "a" }, why: 1 }, "/why"],
  [
    "no components",
    { version: "v0.9", updateComponents: { surfaceId: "a", components: [] } },
    "/updateComponents/components",
  ],
  ["a text", "deleteSurface", ""],
  ["null", null, ""],
  ["a list", [], ""],
];

const server08: readonly Case[] = [
  ["beginRendering", { beginRendering: { surfaceId: "main", root: "root" } }],
  ["styles", { beginRendering: { surfaceId: "main", root: "root", catalogId, styles: { font: "serif" } } }],
  ["surfaceUpdate", { surfaceUpdate: { surfaceId: "main", components: [{ ...text08, weight: 2 }] } }],
  [
    "dataModelUpdate",
    {
      dataModelUpdate: {
        surfaceId: "main",
        path: "/user",
        contents: [
          { key: "name", valueString: "Ada" },
          { key: "age", valueNumber: 36 },
          { key: "isIn", valueBoolean: true },
          { key: "home", valueMap: [{ key: "city", valueString: "London" }] },
        ],
      },
    },
  ],
  ["deleteSurface", { deleteSurface: { surfaceId: "main" } }],
  ["no root", { beginRendering: { surfaceId: "main" } }, "/beginRendering/root"],
  ["two kinds", { deleteSurface: { surfaceId: "a" }, beginRendering: { surfaceId: "a", root: "b" } }, ""],
  ["no kind", {}, ""],
  [
    "a component of 0.9",
    { surfaceUpdate: { surfaceId: "a", components: [text] } },
    "/surfaceUpdate/components/0/component",
  ],
];

const client09: readonly Case[] = [
  ["action", { version: "v0.9", action }],
  ["an error", { version: "v0.9", error: { code: "NO_FONT", surfaceId: "a", message: "No font", more: 1 } }],
  [
    "a failed validation",
    { version: "v0.9", error: { code: "VALIDATION_FAILED", surfaceId: "a", path: "/x", message: "No" } },
  ],
  ["no context", { version: "v0.9", action: { ...action, context: undefined } }, "/action/context"],
  ["a wrong time", { version: "v0.9", action: { ...action, timestamp: "yesterday" } }, "/action/timestamp"],
  ["userAction", { version: "v0.9", userAction: action }, ""],
  [
    "a failed validation without a path",
    { version: "v0.9", error: { code: "VALIDATION_FAILED", surfaceId: "a", message: "No" } },
    "/error/path",
  ],
  ["an error without a surface", { version: "v0.9", error: { code: "A", message: "B" } }, "/error/surfaceId"],
  ["an error without a code", { version: "v0.9", error: { surfaceId: "a", message: "B" } }, "/error/code"],
];

/** As in JSON: members that are `undefined` are not there. */
const plain = (message: unknown): unknown => JSON.parse(JSON.stringify(message));

interface ZodLike {
  safeParse(value: unknown): { readonly success: boolean };
}

describe.each<[string, readonly Case[], (message: unknown) => { readonly path: string } | undefined, ZodLike]>([
  ["messages of an agent in 0.8", server08, serverMessage["0.8"], A2uiMessageSchema08],
  ["messages of an agent in 0.9", server09, serverMessage["0.9"], A2uiMessageSchema],
  ["messages of a client in 0.9", client09, clientMessage["0.9"], A2uiClientMessageSchema],
])("%s: the same verdict as the A2UI project's renderer", (_, cases, check, theirs) => {
  test.each(cases.map(([title, message, path]) => ({ title, message, path })))("$title", ({ message, path }) => {
    expect(check(plain(message))?.path).toBe(path);
    expect(theirs.safeParse(plain(message)).success).toBe(path === undefined);
  });
});

describe("rules of the published schemas that the renderer does not check", () => {
  test("a component needs an id and a type", () => {
    const of = (component: object) => ({
      version: "v0.9",
      updateComponents: { surfaceId: "a", components: [component] },
    });
    expect(serverMessage["0.9"](of({ component: "Text" }))?.path).toBe("/updateComponents/components/0/id");
    expect(serverMessage["0.9"](of({ id: "a" }))?.path).toBe("/updateComponents/components/0/component");
  });

  test("a component of 0.8 has one type, and an entry of its data one value", () => {
    const component = { id: "a", component: { Text: {}, Row: {} } };
    expect(serverMessage["0.8"]({ surfaceUpdate: { surfaceId: "a", components: [component] } })?.path).toBe(
      "/surfaceUpdate/components/0/component",
    );
    const contents = [{ key: "a", valueString: "b", valueNumber: 1 }];
    expect(serverMessage["0.8"]({ dataModelUpdate: { surfaceId: "a", contents } })?.path).toBe(
      "/dataModelUpdate/contents/0",
    );
  });

  test("0.8 allows nested maps, as in its samples", () => {
    const contents = [{ key: "items", valueMap: [{ key: "one", valueMap: [{ key: "name", valueString: "Ada" }] }] }];
    expect(serverMessage["0.8"]({ dataModelUpdate: { surfaceId: "a", contents } })).toBeUndefined();
  });
});

describe("differences between the versions", () => {
  const remove = (version: string) => ({ version, deleteSurface: { surfaceId: "a" } });

  test.each<[A2uiVersion, readonly string[]]>([
    ["0.9", ["v0.9"]],
    ["0.9.1", ["v0.9", "v0.9.1"]],
    ["0.10", ["v0.10"]],
  ])("%s reads messages that say %j", (version, read) => {
    const all = ["v0.8", "v0.9", "v0.9.1", "v0.10", "v1.0"];
    expect(all.filter((said) => serverMessage[version](remove(said)) === undefined)).toEqual(read);
    expect(all.filter((said) => clientMessage[version]({ version: said, action }) === undefined)).toEqual(read);
  });

  test("0.10 has surfaceProperties, and components and data with createSurface", () => {
    const create = { surfaceId: "a", catalogId, surfaceProperties: {}, components: [text], dataModel: { a: 1 } };
    expect(serverMessage["0.10"]({ version: "v0.10", createSurface: create })).toBeUndefined();
    expect(serverMessage["0.9.1"]({ version: "v0.9.1", createSurface: create })?.path).toBe(
      "/createSurface/surfaceProperties",
    );
  });

  test("0.10 answers actions, calls functions, and receives results", () => {
    const call = { call: "now", returnType: "string", callableFrom: "remoteOnly" };
    const check = serverMessage["0.10"];
    for (const right of [
      { version: "v0.10", callFunction: call, functionCallId: "1", wantResponse: true },
      { version: "v0.10", actionId: "1", actionResponse: { value: null } },
      { version: "v0.10", actionId: "1", actionResponse: { error: { code: "A", message: "B" } } },
    ])
      expect(check(right)).toBeUndefined();
    const wrong = [
      { version: "v0.10", callFunction: { ...call, callableFrom: "clientOnly" }, functionCallId: "1" },
      { version: "v0.10", callFunction: call },
      { version: "v0.10", actionId: "1", actionResponse: {} },
      { version: "v0.10", actionResponse: { value: 1 } },
    ];
    expect(wrong.map((one) => check(one)?.path)).toEqual([
      "/callFunction/callableFrom",
      "/functionCallId",
      "/actionResponse",
      "/actionId",
    ]);
    const returned = { functionCallId: "1", call: "now", value: null };
    expect(clientMessage["0.10"]({ version: "v0.10", functionResponse: returned })).toBeUndefined();
    expect(clientMessage["0.9.1"]({ version: "v0.9.1", functionResponse: returned })?.path).toBe("");
  });

  test("an error of 0.10 belongs to a surface or a function call, not both", () => {
    const error = (of: object) =>
      clientMessage["0.10"]({ version: "v0.10", error: { code: "A", message: "B", ...of } });
    expect(error({ surfaceId: "a" })).toBeUndefined();
    expect(error({ functionCallId: "1" })).toBeUndefined();
    expect(error({})?.path).toBe("/error");
    expect(error({ surfaceId: "a", functionCallId: "1" })?.path).toBe("/error");
  });

  test("a client of 0.8 sends userAction, or an error with any members", () => {
    expect(clientMessage["0.8"]({ userAction: action })).toBeUndefined();
    expect(clientMessage["0.8"]({ error: { anything: [1] } })).toBeUndefined();
    expect(clientMessage["0.8"]({ action })?.path).toBe("");
  });
});
