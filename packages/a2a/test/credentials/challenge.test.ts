import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { challengesOf, parameterOf, scopesOf } from "../../src/credentials/choose.ts";

describe("challengesOf() (RFC 9110 §11.6.1)", () => {
  it("reads several challenges of one header, quoted and unquoted, in any case", () => {
    const header =
      'Basic realm="a, \\"b\\" = c", BEARER Error=invalid_token ,scope="x y",, DPoP algs="ES256 EdDSA", Negotiate';
    expect(challengesOf(header)).toEqual([
      { scheme: "basic", parameters: { realm: 'a, "b" = c' } },
      { scheme: "bearer", parameters: { error: "invalid_token", scope: "x y" } },
      { scheme: "dpop", parameters: { algs: "ES256 EdDSA" } },
      { scheme: "negotiate", parameters: {} },
    ]);
    expect(parameterOf(challengesOf(header), "scope")).toBe("x y");
    expect(parameterOf(challengesOf(header), "constructor")).toBeUndefined();
  });

  it("accepts an unquoted URL, as some servers send it", () => {
    const [one] = challengesOf("Bearer resource_metadata=https://a.example.com/.well-known/x");
    expect(one?.parameters["resource_metadata"]).toBe("https://a.example.com/.well-known/x");
  });

  it("parses anything without an error, and long headers in linear time", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 300 }), (text) => {
        for (const { scheme, parameters } of challengesOf(text))
          expect([typeof scheme, typeof parameters]).toEqual(["string", "object"]);
      }),
    );
    for (const piece of ['a="', "a=", '"\\', "a ", ",", 'a="\\"'])
      expect(challengesOf(piece.repeat(5_000_000 / piece.length)).length).toBeLessThan(10_000);
    expect(challengesOf(undefined)).toEqual([]);
  });

  it("takes at most 100 scopes, each as OAuth spells them (RFC 6749 §3.3)", () => {
    expect(scopesOf('a  b a "c" d\\e ü https://x/y')).toEqual(["a", "b", "https://x/y"]);
    expect(scopesOf(Array.from({ length: 500 }, (_, at) => `s${at}`).join(" "))).toHaveLength(100);
    expect(scopesOf("x".repeat(300))).toEqual([]);
  });
});
