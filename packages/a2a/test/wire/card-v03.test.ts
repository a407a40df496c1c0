import { describe, expect, test } from "vitest";
import type { AgentCard, SecurityScheme } from "../../src/model/index.ts";
import { codecV03 } from "../../src/wire/v03/index.ts";
import { card } from "../transport/support.ts";

/** Tests the agent card of A2A 0.3 and 0.2.5 (0.3 §5.5). */

const decode = (more: object = {}): AgentCard =>
  codecV03.decodeCard({
    name: "Old",
    description: "An agent of old",
    url: "https://old.example/rpc",
    version: "1.2.3",
    protocolVersion: "0.3.0",
    capabilities: {},
    defaultInputModes: ["text/plain"],
    defaultOutputModes: ["text/plain"],
    skills: [],
    ...more,
  });

const encode = (more: Partial<AgentCard> = {}): Record<string, unknown> =>
  codecV03.encodeCard(card(more)) as Record<string, unknown>;

describe("interfaces", () => {
  test("the main interface is the first, and each interface is listed once", () => {
    const read = decode({
      preferredTransport: "HTTP+JSON",
      url: "https://old.example/v1",
      additionalInterfaces: [
        { url: "https://old.example/rpc", transport: "JSONRPC" },
        { url: "https://old.example/v1", transport: "HTTP+JSON" },
        { url: "old.example:443", transport: "GRPC" },
      ],
    });
    expect(read.supportedInterfaces).toEqual([
      { url: "https://old.example/v1", protocolBinding: "HTTP+JSON", protocolVersion: "0.3" },
      { url: "https://old.example/rpc", protocolBinding: "JSONRPC", protocolVersion: "0.3" },
      { url: "old.example:443", protocolBinding: "GRPC", protocolVersion: "0.3" },
    ]);
    expect(encode(read)).toMatchObject({
      protocolVersion: "0.3.0",
      url: "https://old.example/v1",
      preferredTransport: "HTTP+JSON",
      additionalInterfaces: [
        { url: "https://old.example/v1", transport: "HTTP+JSON" },
        { url: "https://old.example/rpc", transport: "JSONRPC" },
        { url: "old.example:443", transport: "GRPC" },
      ],
    });
  });

  test("converting any number of them takes linear time", () => {
    // A comparison of all pairs would exceed the time limit of the test many times.
    const additionalInterfaces = Array.from({ length: 300_000 }, (_, at) => ({ url: `u${at}`, transport: "GRPC" }));
    expect(decode({ additionalInterfaces }).supportedInterfaces).toHaveLength(300_001);
  });

  test("the default transport is JSON-RPC, the default version 0.2.5", () => {
    expect(decode({ protocolVersion: undefined }).supportedInterfaces).toEqual([
      { url: "https://old.example/rpc", protocolBinding: "JSONRPC", protocolVersion: "0.2.5" },
    ]);
    expect(decode({ protocolVersion: "0.2.6" }).supportedInterfaces[0]?.protocolVersion).toBe("0.2.6");
  });

  test("interfaces of other versions are left out", () => {
    const url = "https://agents.example";
    const written = encode({
      supportedInterfaces: [
        { url, protocolBinding: "JSONRPC", protocolVersion: "1.0" },
        { url: `${url}/old`, protocolBinding: "JSONRPC", protocolVersion: "0.3" },
      ],
    });
    expect(written).toMatchObject({ url: `${url}/old`, preferredTransport: "JSONRPC" });
    expect(written).not.toHaveProperty("additionalInterfaces");
    expect(written).not.toHaveProperty("supportedInterfaces");
  });
});

describe("security schemes", () => {
  const scopes = { read: "Reads" };
  const code = { authorizationUrl: "https://id.example/a", tokenUrl: "https://id.example/t", scopes };

  test.each<[string, Record<string, unknown>, SecurityScheme]>([
    [
      "apiKey, its place called in",
      { type: "apiKey", in: "header", name: "X-Key", description: "d" },
      { apiKeySecurityScheme: { location: "header", name: "X-Key", description: "d" } },
    ],
    [
      "http",
      { type: "http", scheme: "Bearer", bearerFormat: "JWT" },
      { httpAuthSecurityScheme: { scheme: "Bearer", bearerFormat: "JWT" } },
    ],
    [
      "oauth2",
      { type: "oauth2", flows: { authorizationCode: code }, oauth2MetadataUrl: "https://id.example/m" },
      { oauth2SecurityScheme: { flows: { authorizationCode: code }, oauth2MetadataUrl: "https://id.example/m" } },
    ],
    [
      "oauth2 of machines",
      { type: "oauth2", flows: { clientCredentials: { tokenUrl: "https://id.example/t", scopes } } },
      { oauth2SecurityScheme: { flows: { clientCredentials: { tokenUrl: "https://id.example/t", scopes } } } },
    ],
    [
      "openIdConnect",
      { type: "openIdConnect", openIdConnectUrl: "https://id.example/o" },
      { openIdConnectSecurityScheme: { openIdConnectUrl: "https://id.example/o" } },
    ],
    ["mutualTLS", { type: "mutualTLS", description: "d" }, { mtlsSecurityScheme: { description: "d" } }],
  ])("%s", (_, old, scheme) => {
    expect(decode({ securitySchemes: { s: old } }).securitySchemes).toEqual({ s: scheme });
    expect(encode({ securitySchemes: { s: scheme } })["securitySchemes"]).toEqual({ s: old });
    // A served card of both versions also has both forms.
    expect(decode({ securitySchemes: { s: { ...scheme, ...old } } }).securitySchemes).toEqual({ s: scheme });
  });

  test("in the form of the proto are read as well", () => {
    const read = decode({
      securitySchemes: { key: { apiKeySecurityScheme: { location: "query", name: "k" } } },
      security: [{ schemes: { key: { list: ["a"] }, other: {} } }],
    });
    expect(read.securitySchemes).toEqual({ key: { apiKeySecurityScheme: { location: "query", name: "k" } } });
    expect(read.securityRequirements).toEqual([{ schemes: { key: { list: ["a"] }, other: { list: [] } } }]);
  });

  test("with several OAuth flows are written with one", () => {
    const implicit = { authorizationUrl: "https://id.example/a", scopes };
    const read = decode({ securitySchemes: { s: { type: "oauth2", flows: { implicit, authorizationCode: code } } } });
    expect(read.securitySchemes?.["s"]?.oauth2SecurityScheme?.flows).toEqual({ authorizationCode: code });
    const alone = decode({ securitySchemes: { s: { type: "oauth2", flows: { implicit } } } });
    expect(alone.securitySchemes?.["s"]?.oauth2SecurityScheme?.flows).toEqual({ implicit });
  });

  test("are written without the members that 0.3 does not have", () => {
    const device = { deviceAuthorizationUrl: "https://id.example/d", tokenUrl: "https://id.example/t", scopes };
    expect(
      encode({ securitySchemes: { s: { oauth2SecurityScheme: { flows: { deviceCode: device } } } } }),
    ).toMatchObject({
      securitySchemes: { s: { type: "oauth2", flows: {} } },
    });
    const pkce = { authorizationCode: { ...code, pkceRequired: true } };
    expect(encode({ securitySchemes: { s: { oauth2SecurityScheme: { flows: pkce } } } })).toMatchObject({
      securitySchemes: { s: { flows: { authorizationCode: code } } },
    });
  });

  test("of an unknown type do not make a card invalid", () => {
    expect(decode({ securitySchemes: { s: { type: "magic" } } }).securitySchemes).toEqual({ s: {} });
  });

  test("security requirements of an agent and of a skill", () => {
    const security = [{ a: ["read"], b: [] }, {}];
    const requirements = [{ schemes: { a: { list: ["read"] }, b: { list: [] } } }, { schemes: {} }];
    const skill = { id: "s", name: "S", description: "d", tags: ["t"] };
    const read = decode({ security, skills: [{ ...skill, security }] });
    expect(read.securityRequirements).toEqual(requirements);
    expect(read.skills).toEqual([{ ...skill, securityRequirements: requirements }]);
    expect(encode(read)).toMatchObject({ security, skills: [{ ...skill, security }] });
  });
});

describe("the flag of the extended card", () => {
  test.each(["supportsAuthenticatedExtendedCard", "supportsExtendedAgentCard"])("is read from %s", (name) => {
    expect(decode({ [name]: true }).capabilities).toEqual({ extendedAgentCard: true });
  });

  test("is written outside of the capabilities", () => {
    expect(encode({ capabilities: { streaming: true, extendedAgentCard: true } })).toMatchObject({
      capabilities: { streaming: true },
      supportsAuthenticatedExtendedCard: true,
    });
  });
});

test("all other members are the same in 0.3 and 1.0", () => {
  const more = {
    provider: { organization: "Org", url: "https://org.example" },
    documentationUrl: "https://org.example/doc",
    iconUrl: "https://org.example/icon",
    capabilities: { streaming: true, pushNotifications: false, extensions: [{ uri: "urn:x", required: true }] },
    signatures: [{ protected: "p", signature: "s", header: { a: 1 } }],
    skills: [
      { id: "s", name: "S", description: "d", tags: [], examples: ["e"], inputModes: ["a/b"], outputModes: ["c/d"] },
    ],
  };
  expect(decode(more)).toMatchObject(more);
  expect(encode(more)).toMatchObject(more);
});

test("an invalid card is rejected with the names of the fields, and not changed", () => {
  const value = { supportedInterfaces: [], skills: null };
  expect(() => codecV03.decodeCard(value)).toThrow("url is required");
  expect(value).toEqual({ supportedInterfaces: [], skills: null });
});
