import { describe, expect, test } from "vitest";
import { buildCard, interfacesOf } from "../../src/transport/discovery/handler.ts";
import { jsonRpcBinding } from "../../src/transport/jsonrpc/handler.ts";
import { restBinding } from "../../src/transport/rest/handler.ts";
import { A2AError } from "../../src/model/index.ts";
import { codecV1 } from "../../src/wire/v1/index.ts";
import { StillClock, ask, card, request, ScriptedService, serveAlone, serveMounts } from "./support.ts";

const path = "/.well-known/agent-card.json";
const service = new ScriptedService();

describe("the card's endpoint (A2A 1.0 §8.2, §8.6)", () => {
  test("serves the card with a strong ETag and a max-age", async () => {
    const answer = await ask(serveAlone(service, { maxAge: 60 }), request("GET", path));
    expect(answer).toMatchObject({ status: 200, json: card() });
    expect(answer.headers).toMatchObject({ "content-type": "application/json", "cache-control": "public, max-age=60" });
    expect(answer.headers["etag"]).toMatch(/^"[0-9a-f]{32}"$/);
    expect(answer.headers).not.toHaveProperty("vary");
  });

  test("has the same ETag for the same card and a different one for a different card", async () => {
    const tag = async (description: string) => {
      const handler = serveMounts([{ path: "", service, card: card({ description }) }]);
      return (await ask(handler, request("GET", path))).headers["etag"];
    };
    expect(await tag("a")).toBe(await tag("a"));
    expect(await tag("a")).not.toBe(await tag("b"));
  });

  test("answers 304 without a body if the client has the card", async () => {
    const handler = serveAlone(service);
    const etag = (await ask(handler, request("GET", path))).headers["etag"] ?? "";
    for (const known of [etag, `W/${etag}`, `"x", ${etag}`, "*"]) {
      const answer = await ask(handler, request("GET", path, { headers: { "if-none-match": known } }));
      expect(answer).toMatchObject({
        status: 304,
        text: "",
        headers: { etag, "cache-control": "public, max-age=300" },
      });
    }
    expect(await ask(handler, request("GET", path, { headers: { "if-none-match": '"x"' } }))).toMatchObject({
      status: 200,
    });
  });

  test("answers HEAD like GET, without a body by the host, and other methods with 405", async () => {
    const handler = serveAlone(service);
    const head = await ask(handler, request("HEAD", path));
    expect(head).toEqual(await ask(handler, request("GET", path)));
    expect(await ask(handler, request("POST", path, { body: "{}" }))).toMatchObject({
      status: 405,
      headers: { allow: "GET, HEAD" },
    });
  });

  test("needs no credentials", async () => {
    const handler = serveAlone(service, { authenticate: () => Promise.reject(new A2AError("Unauthenticated")) });
    expect(await ask(handler, request("GET", path))).toMatchObject({ status: 200 });
  });

  test("sends Vary if the answer depends on the version of the request", async () => {
    const later = { ...codecV1, version: "9.1", encodeCard: () => ({ later: true }) };
    const handler = serveAlone(service, { codecs: [codecV1, later] });
    const plain = await ask(handler, request("GET", path));
    expect(plain).toMatchObject({ json: { ...card(), later: true }, headers: { vary: "A2A-Version" } });
    const first = await ask(handler, request("GET", path, { headers: { "a2a-version": "1.0" } }));
    expect(first).toMatchObject({ json: card(), headers: { vary: "A2A-Version" } });
    const asked = await ask(handler, request("GET", path, { headers: { "a2a-version": "9.1" } }));
    expect(asked).toMatchObject({ json: { later: true }, headers: { vary: "A2A-Version" } });
    expect(asked.headers["etag"]).not.toBe(plain.headers["etag"]);
    expect((await ask(handler, request("GET", `${path}?A2A-Version=9.1`))).json).toEqual({ later: true });
    expect((await ask(handler, request("GET", path, { headers: { "a2a-version": "5.0" } }))).text).toBe(plain.text);
  });

  test("merges the cards of all versions for a request without a version; the first version takes precedence", async () => {
    const forms = [
      { name: "one", schemes: { key: { a: 1 } }, skills: [{ id: "s", a: 1 }], list: [1] },
      { name: "two", schemes: { key: { b: 2 }, more: {} }, skills: [{ id: "t", b: 2 }], list: [2, 3], url: "x" },
    ];
    const codecs = forms.map((form, at) => ({ ...codecV1, version: `9.${at}`, encodeCard: () => form }));
    const handler = serveAlone(service, { codecs: codecs as never });
    expect((await ask(handler, request("GET", path))).json).toEqual({
      name: "one",
      schemes: { key: { a: 1, b: 2 }, more: {} },
      skills: [{ id: "s", a: 1, b: 2 }],
      list: [1],
      url: "x",
    });
  });

  test("sends Last-Modified, and compares dates if there is no tag (RFC 9110 §13.1.3)", async () => {
    const clock = new StillClock();
    clock.advance(86_400_500);
    const handler = serveAlone(service, { clock });
    clock.advance(60_000);
    const { headers } = await ask(handler, request("GET", path));
    expect(headers["last-modified"]).toBe("Fri, 02 Jan 1970 00:00:00 GMT");
    const asked = async (more: Record<string, string>) =>
      (await handler(request("GET", path, { headers: more }))).status;
    expect(await asked({ "if-modified-since": "Fri, 02 Jan 1970 00:00:00 GMT" })).toBe(304);
    expect(await asked({ "if-modified-since": "Thu, 01 Jan 1970 00:00:00 GMT" })).toBe(200);
    expect(await asked({ "if-modified-since": "yesterday" })).toBe(200);
    const newer = { "if-none-match": '"other"', "if-modified-since": "Sat, 03 Jan 1970 00:00:00 GMT" };
    expect(await asked(newer)).toBe(200);
  });
});

describe("a card has", () => {
  const bindings = [jsonRpcBinding(), restBinding()];
  const agent = { name: "Echo", description: "Says it again", version: "1.2.3", skills: [] };

  test("both bindings at one URL, JSON-RPC first (§8.3.1), and defaults for omitted members", () => {
    const interfaces = interfacesOf(bindings, [codecV1], { url: "https://x.example/echo" });
    expect(buildCard(agent, { interfaces })).toEqual({
      ...agent,
      supportedInterfaces: [
        { url: "https://x.example/echo", protocolBinding: "JSONRPC", protocolVersion: "1.0" },
        { url: "https://x.example/echo", protocolBinding: "HTTP+JSON", protocolVersion: "1.0" },
      ],
      capabilities: { streaming: true },
      defaultInputModes: ["text/plain"],
      defaultOutputModes: ["text/plain"],
    });
  });

  test("the tenant in every interface (§8.3.2)", () => {
    const interfaces = interfacesOf(bindings, [codecV1], { url: "https://x.example", tenant: "acme" });
    expect(interfaces.map(({ tenant }) => tenant)).toEqual(["acme", "acme"]);
  });

  test("the security schemes of the server, beside the agent's own", () => {
    const bearer = { httpAuthSecurityScheme: { scheme: "Bearer" } };
    const key = { apiKeySecurityScheme: { location: "header", name: "X-Key" } };
    const host = {
      interfaces: [],
      securitySchemes: { bearer },
      securityRequirements: [{ schemes: { bearer: { list: [] } } }],
    };
    expect(buildCard(agent, host)).toMatchObject({
      securitySchemes: { bearer },
      securityRequirements: host.securityRequirements,
    });
    const own = { ...agent, securitySchemes: { key }, securityRequirements: [{ schemes: { key: {}, bearer: {} } }] };
    expect(buildCard(own, host)).toMatchObject({
      securitySchemes: { bearer, key },
      securityRequirements: own.securityRequirements,
    });
  });

  test("the server's extensions after the agent's own", () => {
    const own = { ...agent, capabilities: { streaming: false, extensions: [{ uri: "urn:own" }] } };
    const { capabilities } = buildCard(own, {
      interfaces: [],
      extensions: [{ uri: "urn:host" }],
    });
    expect(capabilities).toEqual({ streaming: false, extensions: [{ uri: "urn:own" }, { uri: "urn:host" }] });
  });

  test("members that the codec reads back unchanged", () => {
    const host = {
      interfaces: [],
      securitySchemes: { b: { httpAuthSecurityScheme: { scheme: "Bearer" } } },
    };
    const built = buildCard(agent, host);
    expect(codecV1.decodeCard(JSON.parse(JSON.stringify(codecV1.encodeCard(built))))).toEqual(built);
  });
});
