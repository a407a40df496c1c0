import { describe, expect, test } from "vitest";
import { oid4vpUri, oid4vpWith, readOid4vpRequest, walletUrl, type Oid4vpRequest } from "../../src/oid4vp/index.ts";
import type { JsonValue, Message } from "@parley/a2a/internal/model/index";

function messageOf(authorizationRequest: JsonValue): Pick<Message, "metadata"> {
  return { metadata: { [oid4vpUri]: { authorizationRequest } } };
}

/** The shape that the public sample sends: a URI that invokes a wallet, with everything in its query. */
const client = "redirect_uri:http://localhost:3001/oid4vp/authorize?session=1";
const sample = {
  request_uri: `openid4vp://?response_type=vp_token&client_id=${encodeURIComponent(client)}&response_mode=direct_post&nonce=n`,
  client_id: client,
};

describe("a request is untrusted input (extension v1, Authorization Request)", () => {
  const right: readonly (readonly [name: string, request: Oid4vpRequest])[] = [
    ["a URI of a verifier", { client_id: "v", request_uri: "https://verifier.example/1" }],
    ["the URI of the public sample", sample],
    [
      "the request itself",
      { client_id: "v", request: { client_id: "v", nonce: "n", dcql_query: { credentials: [] } } },
    ],
    ["the request without its client", { client_id: "v", request: { nonce: "n" } }],
    ["a verifier on this machine", { client_id: "v", request_uri: "http://localhost:3001/request" }],
  ];
  test.each(right)("%s", (_, request) => {
    expect(readOid4vpRequest(messageOf(request as unknown as JsonValue))).toEqual(request);
  });

  test("null members are absent", () => {
    const request = { client_id: "v", request_uri: null, request: { nonce: "n" } };
    expect(readOid4vpRequest(messageOf(request))).toEqual({ client_id: "v", request: { nonce: "n" } });
  });

  const at = "https://verifier.example/1";
  const wrong: readonly (readonly [name: string, request: JsonValue])[] = [
    ["no client", { request_uri: at }],
    ["an empty client", { client_id: "", request_uri: at }],
    ["neither a URI nor a request", { client_id: "v" }],
    ["both", { client_id: "v", request_uri: at, request: {} }],
    ["another client in the request", { client_id: "v", request: { client_id: "w" } }],
    ["another client in the URI", { client_id: "v", request_uri: `${at}?client_id=w` }],
    ["two clients in the URI", { client_id: "v", request_uri: `${at}?client_id=v&client_id=w` }],
    ["a relative URI", { client_id: "v", request_uri: "/request" }],
    ["a URI without TLS", { client_id: "v", request_uri: "http://verifier.example/1" }],
    ["a script", { client_id: "v", request_uri: "javascript:alert(1)" }],
    ["a file", { client_id: "v", request_uri: "file:///etc/passwd" }],
    ["data", { client_id: "v", request_uri: "data:text/html,x" }],
    ["a URI with a password", { client_id: "v", request_uri: "https://a:b@verifier.example" }],
    ["a request that is text", { client_id: "v", request: "eyJ" }],
    ["a script of a system", { client_id: "v", request_uri: "ms-msdt:/id PCWDiagnostic" }],
    ["a file in an archive", { client_id: "v", request_uri: "jar:file:///etc/passwd!/x" }],
    ["a wallet that is sent to a file", { client_id: "v", request_uri: "openid4vp://?request_uri=file:///etc/passwd" }],
    ["a request that is somewhere else", { client_id: "v", request: { request_uri: "http://10.0.0.1/1" } }],
    ["a request that contains another", { client_id: "v", request: { request: "eyJ" } }],
    ["one that is too large", { client_id: "v", request: { big: "x".repeat(17_000) } }],
    ["one that is too large in bytes", { client_id: "v", request: { big: "€".repeat(6000) } }],
    ["a wallet with something after #", { client_id: "v", request_uri: "openid4vp://?client_id=v#client_id=w" }],
    ["a text", "request"],
    ["a list", []],
    ["nothing", null],
  ];
  test.each(wrong)("and not %s", (_, request) => {
    expect(readOid4vpRequest(messageOf(request))).toBe(undefined);
  });

  test("and a message without one is not", () => {
    expect(readOid4vpRequest(undefined)).toBe(undefined);
    expect(readOid4vpRequest({})).toBe(undefined);
    expect(readOid4vpRequest({ metadata: { [oid4vpUri]: "x" } })).toBe(undefined);
  });
});

describe("a wallet is invoked (OID4VP 1.0 §9)", () => {
  test("with the URI of the request", () => {
    const request = { client_id: "x509:v", request_uri: "https://verifier.example/1" };
    expect(walletUrl(request)).toBe("openid4vp://?client_id=x509%3Av&request_uri=https%3A%2F%2Fverifier.example%2F1");
    expect(walletUrl(request, "https://wallet.example/open?v=1")).toMatch(
      /^https:\/\/wallet\.example\/open\?v=1&client_id=/,
    );
  });

  test("with the parameters of the request, as JSON unless they are text", () => {
    const url = new URL(walletUrl({ client_id: "v", request: { nonce: "n", dcql_query: { credentials: [] } } }));
    expect(Object.fromEntries(url.searchParams)).toEqual({
      client_id: "v",
      nonce: "n",
      dcql_query: '{"credentials":[]}',
    });
  });

  test("with the URI of the public sample, unchanged", () => {
    expect(walletUrl(sample)).toBe(sample.request_uri);
  });
});

describe("only links with a wallet scheme are read", () => {
  /** Invalid links, including spellings that programs read differently. */
  const never: readonly string[] = [
    "javascript:alert(1)",
    "JaVaScRiPt:alert(1)",
    " javascript:alert(1)",
    "java\nscript:alert(1)",
    "\tjavascript:alert(1)",
    "javascript\t:alert(1)",
    "javascript&colon;alert(1)",
    "java%73cript:alert(1)",

    "\u0000javascript:alert(1)",
    "vbscript:x",
    "view-source:javascript:1",
    "javascript://verifier.example/%0aalert(1)",
    "data:text/html,x",
    "DATA:text/html;base64,eA==",
    " data:,x",
    "dat\ra:,x",

    "file:///etc/passwd",
    "FILE:/etc/passwd",
    "file:etc",
    "f\nile:///x",
    "blob:https://a.example/1",
    "filesystem:https://a.example/1",

    "",
    "/request",
    "//verifier.example/1",
    "\\\\verifier.example\\1",
    "/\\verifier.example",
    "request",
    "?a",
    "#a",
    ":x",
    "1:x",

    "https:request",
    "https:/request",
    "https:\\\\verifier.example",
    "https:///verifier.example/1",
    " https://verifier.example/1",

    "https://verifier.example/1\n",
    "https://verifier.example/a b",
    "https://verif\u00adier.example/1",
    "https://a@verifier.example",

    "http://verifier.example",
    "http://localhost.verifier.example",
    "http:localhost",
    "intent://x#Intent;scheme=file;end",

    "ms-msdt:/id",
    "search-ms:query=x",
    "steam://run/1",
    "slack://open",
    "zoommtg://x",
    "x-apple.systempreferences:",
    "tel:1",
    "openid4vp:",
    "openid4vpx://?client_id=v",
    "openid4vp://a@b",
    "com.example.wallet://?client_id=v",
    "openid4vp://?request_uri=javascript:1",
    "openid4vp://?request%5Furi=https:x",
    "openid4vp:?request_uri=/x",
  ];
  test.each(never)("%j is none", (at) => {
    const request = { client_id: "v", request_uri: at };
    expect(readOid4vpRequest(messageOf(request))).toBe(undefined);
    expect(() => walletUrl(request)).toThrow(TypeError);
  });

  test.each(["javascript:", " javascript:", "data:,", "file:///", "/wallet", "https:wallet", "acme://"])(
    "%j is not an endpoint of a wallet",
    (endpoint) => expect(() => walletUrl({ client_id: "v", request: {} }, endpoint)).toThrow(TypeError),
  );

  test.each(["openid4vp://", "OPENID4VP://", "haip-vp://", "mdoc-openid4vp://"])("%s is one", (scheme) => {
    const request = {
      client_id: "v",
      request_uri: `${scheme}?client_id=v&request_uri=https%3A%2F%2Fverifier.example%2F1`,
    };
    expect(readOid4vpRequest(messageOf(request))).toEqual(request);
    expect(walletUrl(request)).toBe(request.request_uri);
  });

  test("schemes of apps are allowed if configured", () => {
    const request = { client_id: "v", request_uri: "com.example.wallet://?client_id=v" };
    const options = { walletSchemes: ["com.example.wallet"] };
    expect(readOid4vpRequest(messageOf(request), options)).toEqual(request);
    expect(walletUrl(request, undefined, options)).toBe(request.request_uri);
    expect(walletUrl({ client_id: "v", request: {} }, "com.example.wallet://ask", options)).toBe(
      "com.example.wallet://ask?client_id=v",
    );
  });

  test.each(["javascript", "JavaScript", "data", "file", "http", "https", "", "a b", "wallet:", "intent", 1])(
    "no option makes %j a scheme of wallets",
    (name) => {
      const options = { walletSchemes: [name as string] };
      expect(() => readOid4vpRequest(messageOf({ client_id: "v" }), options)).toThrow(/^walletSchemes must be/);
      expect(() => oid4vpWith(options)).toThrow(TypeError);
    },
  );
});

test("a request is added to the query of an endpoint, before its fragment (RFC 3986 §3.5)", () => {
  const request = { client_id: "v", request_uri: "https://verifier.example/1#digest" };
  const link = new URL(walletUrl(request, "https://wallet.example/open?v=1#/present?x=1"));
  expect(Object.fromEntries(link.searchParams)).toEqual({ v: "1", client_id: "v", request_uri: request.request_uri });
  expect(link.hash).toBe("#/present?x=1");
});
