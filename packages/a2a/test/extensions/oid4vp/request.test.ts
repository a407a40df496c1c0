import { describe, expect, test } from "vitest";
import { oid4vpUri, readOid4vpRequest, walletUrl, type Oid4vpRequest } from "../../../src/extensions/oid4vp/index.ts";
import type { JsonValue, Message } from "../../../src/model/index.ts";

function messageOf(authorizationRequest: JsonValue): Pick<Message, "metadata"> {
  return { metadata: { [oid4vpUri]: { authorizationRequest } } };
}

/** The shape that the public sample sends: a URI that invokes a wallet, with everything in its query. */
const client = "redirect_uri:http://localhost:3001/oid4vp/authorize?session=1";
const sample = {
  request_uri: `openid4vp://?response_type=vp_token&client_id=${encodeURIComponent(client)}&response_mode=direct_post&nonce=n`,
  client_id: client,
};

describe("a request is read as what a stranger wrote (extension v1, Authorization Request)", () => {
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

  test("a member that is null is absent", () => {
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
    ["a request with another one in it", { client_id: "v", request: { request: "eyJ" } }],
    ["one that is too large", { client_id: "v", request: { big: "x".repeat(17_000) } }],
    ["one that is too large in bytes", { client_id: "v", request: { big: "€".repeat(6000) } }],
    ["a text", "request"],
    ["a list", []],
    ["nothing", null],
  ];
  test.each(wrong)("and not %s", (_, request) => {
    expect(readOid4vpRequest(messageOf(request))).toBe(undefined);
  });

  test("and not a message without it", () => {
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

  test("with the parameters of the request, each of them JSON where it is no text", () => {
    const url = new URL(walletUrl({ client_id: "v", request: { nonce: "n", dcql_query: { credentials: [] } } }));
    expect(Object.fromEntries(url.searchParams)).toEqual({
      client_id: "v",
      nonce: "n",
      dcql_query: '{"credentials":[]}',
    });
  });

  test("with what the public sample sends, as it is", () => {
    expect(walletUrl(sample)).toBe(sample.request_uri);
  });
});
