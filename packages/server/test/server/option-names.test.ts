import { describe, expect, test } from "vitest";
import { connect, type CallOptions, type ConnectOptions } from "@parley/a2a/internal/client/index";
import { createHandler } from "../../src/handler.ts";
import { defineAgent } from "../../src/agent/index.ts";
import { memoryStore } from "../../src/store/index.ts";
import { cardOf, jsonRpcAt } from "../../../a2a/test/client/support.ts";

/* Unknown options, which untyped JavaScript can pass, are errors. Otherwise the server would ignore them silently. */

const definition = {
  name: "Echo",
  description: "Says it again",
  version: "1.0.0",
  skills: [],
  onMessage: () => undefined,
} as unknown as Parameters<typeof defineAgent>[0];
const agent = defineAgent(definition);

const given = { publicUrl: "https://agents.example", store: memoryStore() };
const handler = (options: object) => createHandler(agent, { ...given, ...options });

describe("createHandler()", () => {
  test.each([
    [{ limit: { bodyBytes: 1 } }, "limit is not an option of createHandler(): did you mean limits?"],
    [{ authenticater: {} }, "authenticater is not an option of createHandler(): did you mean authenticator?"],
    [{ interceptor: [] }, "interceptor is not an option of createHandler(): did you mean interceptors?"],
    [{ constructor: 1 }, "constructor is not an option of createHandler(). The options are allowedHosts, "],
    [{ cors: { origin: "*" } }, "origin is not an option of cors: did you mean origins?"],
    [{ authorization: { key: [] } }, "key is not an option of authorization: did you mean keys?"],
    [{ blobs: { inlineByte: 1 } }, "inlineByte is not an option of blobs: did you mean inlineBytes?"],
    [{ dedupe: { onconflict: "refuse" } }, "onconflict is not an option of dedupe: did you mean onConflict?"],
    [{ health: { readyz: "/r" } }, "readyz is not an option of health: did you mean ready?"],
    [{ lease: { maxAttempt: 1 } }, "maxAttempt is not an option of lease: did you mean maxAttempts?"],
    [{ push: { retries: [] } }, "retries is not an option of push. The options are keys, "],
    [{ push: { net: { allowPrivat: true } } }, "allowPrivat is not an option of push.net: did you mean allowPrivate?"],
    [{ retention: { complete: 1 } }, "complete is not an option of retention: did you mean completed?"],
    [
      { retention: { agents: { "/a": { replay: 1 } } } },
      'replay is not an option of retention.agents["/a"]. The options are terminal, ',
    ],
    [{ signCards: { key: [] } }, "key is not an option of signCards: did you mean keys?"],
    [{ cors: "https://app.example" }, "cors needs an object. The options are origins, headers, maxAge"],
    [{ cors: ["https://app.example"] }, "cors needs an object. The options are origins, headers, maxAge"],
    [{ cors: { origins: "https://app.example" } }, 'cors.origins must be "*" or a list, such as ["https://app.'],
    [{ cors: {} }, 'cors.origins must be "*" or a list, such as ["https://app.example.com"]'],
    [{ push: "secret-of-a-key" }, "push needs an object. The options are keys, net, "],
    [{ lease: 5 }, "lease needs an object. The options are ttl, "],
    [{ routes: "/status" }, "routes must be a function, or a list such as"],
  ])("rejects %j", (options, message) => {
    expect(() => handler(options)).toThrow(message);
  });

  test("rejects a member that a mount does not have", () => {
    const mount = { agent, paths: "/weather" };
    expect(() => createHandler([mount], given)).toThrow("paths is not an option of a mount: did you mean path?");
  });

  test("accepts options that are undefined", async () => {
    await handler({ limit: undefined, cors: undefined, push: undefined, lease: { tll: undefined } }).close();
  });
});

test.each([
  [{ skill: [] }, "skill is not an option of defineAgent(): did you mean skills?"],
  [{ resumeable: true }, "resumeable is not an option of defineAgent(): did you mean resumable?"],
  [{ onmessage() {} }, "onmessage is not an option of defineAgent(): did you mean onMessage?"],
  [{ supportedInterfaces: [] }, "supportedInterfaces is not an option of defineAgent(). The options are "],
  [{ version: 1 }, "The agent is not valid: version must be a string"],
  [{ version: undefined, skills: undefined }, "version is required, skills is required"],
  [{ skills: "echo" }, "skills must be an array"],
  [{ skills: [{ id: "echo", name: "Echo", description: "Repeats" }] }, "skills[0].tags is required"],
  [{ defaultInputModes: "text/plain" }, "defaultInputModes must be an array"],
  [{ idleTimeout: "5m" }, "idleTimeout must be a number of milliseconds, or false"],
  [{ onMessage: undefined }, "onMessage must be a function"],
])("defineAgent() rejects %j", (more, message) => {
  expect(() => defineAgent({ ...definition, ...(more as object) })).toThrow(message);
});

test.each([undefined, null, "x", []])("defineAgent() rejects %j in place of a definition", (given) => {
  expect(() => defineAgent(given as never)).toThrow("defineAgent() needs an object. The options are capabilities, ");
});

describe("connect()", () => {
  const card = cardOf([jsonRpcAt("http://127.0.0.1:9")]);

  test.each([
    [{ header: {} }, "header is not an option of connect(): did you mean headers?"],
    [{ interceptor: [] }, "interceptor is not an option of connect(): did you mean interceptors?"],
    [{ apiKey: "k" }, "apiKey is not an option of connect(). The options are binding, "],
  ])("rejects %j, and lists the valid ones", async (more, message) => {
    const [name] = Object.keys(more);
    await expect(connect(card, more as ConnectOptions)).rejects.toMatchObject({
      code: "InvalidParams",
      fields: [{ field: name }],
      message: expect.stringContaining(message),
    });
  });

  test.each([
    ["localhost:4000", '"localhost:4000" is not an HTTP URL, such as "http://localhost:4000"'],
    ["ftp://agents.example", '"ftp://agents.example" is not an HTTP URL'],
    ["", '"" is not an HTTP URL'],
    [undefined, "agent must be a URL or a card; got undefined"],
    [4000, "agent must be a URL or a card; got number"],
  ])("rejects the address %j, and sends nothing", async (address, message) => {
    const fetch = () => Promise.reject(new Error("never"));
    await expect(connect(address as string, { fetch })).rejects.toMatchObject({
      code: "InvalidParams",
      message: expect.stringContaining(message),
    });
  });

  test.each([{ contextId: "c" }, { metadata: {} }, { timeOut: 5 }])(
    "a call rejects %j, and sends nothing",
    async (wrong) => {
      const more = wrong as CallOptions;
      const [name] = Object.keys(more);
      let asked = 0;
      const fetch = () => Promise.reject(new Error(`request ${(asked += 1)}`));
      const client = await connect(card, { fetch, retry: false, reconnect: false });
      const said = {
        message: expect.stringMatching(new RegExp(`${name} is not an option of a call\\. The options are .*timeout`)),
      };
      await expect(client.sendMessage("hi", more)).rejects.toMatchObject(said);
      await expect(client.getTask("t1", more)).rejects.toMatchObject(said);
      await expect(client.waitFor("t1", more)).rejects.toMatchObject(said);
      await expect(client.sendStreamingMessage("hi", more).opened()).rejects.toMatchObject(said);
      expect(asked).toBe(0);
    },
  );
});
