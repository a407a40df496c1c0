import { describe, expect, test } from "vitest";
import { bearer } from "../../src/auth/index.ts";
import { A2AError } from "../../src/model/index.ts";
import { codecV1 } from "../../src/wire/v1/index.ts";
import { card, request } from "../transport/support.ts";

const place = { resources: ["https://agents.example.com"], url: "https://agents.example.com/" };
const alice = { subject: "alice", organization: "acme", scopes: ["read"] };
const bob = { subject: "bob" };
const tokens = { "alices-token": alice, "bobs.token~+/==": bob };

const withHeader = (authorization?: string) =>
  request("GET", "/tasks", { headers: authorization === undefined ? {} : { authorization } });

async function refusal(authorization: string | undefined, authenticator = bearer(tokens)): Promise<A2AError> {
  const result = await Promise.resolve(authenticator.authenticate(withHeader(authorization), place)).catch(
    (error: unknown) => error,
  );
  if (result instanceof A2AError) return result;
  throw new Error(`Let in: ${JSON.stringify(result)}`);
}

describe("bearer() with a list of tokens (RFC 6750)", () => {
  test("finds the caller of a token; the scheme may be in upper or lower case", async () => {
    const authenticator = bearer(tokens);
    for (const scheme of ["Bearer", "bearer", "BEARER", "Bearer "]) {
      const found = await authenticator.authenticate(withHeader(`${scheme} alices-token`), place);
      expect(found).toEqual({ ...alice, schemes: { bearer: ["read"] } });
    }
    const found = await authenticator.authenticate(withHeader("Bearer bobs.token~+/=="), place);
    expect(found).toEqual({ ...bob, schemes: { bearer: [] } });
  });

  test.each([[undefined], [""], ["Basic YTpi"], ["Bearer"], ["Bearer "], ["alices-token"], ["Bearer:alices-token"]])(
    "asks for a token if the request has none: %j",
    async (authorization) => {
      expect(await refusal(authorization)).toMatchObject({ code: "Unauthenticated", challenge: "Bearer" });
    },
  );

  test.each([
    ["Bearer nobodys-token"],
    ["Bearer alices-toke"],
    ["Bearer alices-token2"],
    ["Bearer Alices-Token"],
    ["Bearer alices-token, Bearer bobs-token"],
    ["Bearer alices-token, Basic YTpi"],
    ["Bearer alices-token alices-token"],
    ["Bearer constructor"],
    ["Bearer __proto__"],
    ["Bearer grün"],
  ])("rejects a wrong token as invalid: %j", async (authorization) => {
    expect(await refusal(authorization)).toMatchObject({
      code: "Unauthenticated",
      challenge: 'Bearer error="invalid_token"',
    });
  });

  test("rejects a list with a token that cannot be sent", () => {
    for (const bad of ["", "two words", "grün", "a,b", "a=b"]) {
      expect(() => bearer({ [bad]: alice })).toThrow(/RFC 6750/);
    }
  });

  test("shows no token in an error", () => {
    expect(() => bearer({ "my secret": alice })).not.toThrow(/my secret/);
  });

  test("puts the realm into the challenge, quoted", async () => {
    const authenticator = bearer(tokens, { realm: 'the "lab"' });
    expect((await refusal(undefined, authenticator)).challenge).toBe('Bearer realm="the \\"lab\\""');
    expect((await refusal("Bearer x", authenticator)).challenge).toBe(
      'Bearer realm="the \\"lab\\"", error="invalid_token"',
    );
  });

  test("declares its scheme for the card (A2A 1.0 §4.5.3)", () => {
    const { securitySchemes, securityRequirements } = bearer(tokens, {
      name: "team",
      bearerFormat: "opaque",
      description: "Ask us",
    });
    expect(securitySchemes).toEqual({
      team: { httpAuthSecurityScheme: { scheme: "Bearer", bearerFormat: "opaque", description: "Ask us" } },
    });
    expect(securityRequirements).toEqual([{ schemes: { team: { list: [] } } }]);
    expect(() => codecV1.decodeCard(card({ securitySchemes, securityRequirements }))).not.toThrow();
  });
});

describe("bearer() with a function", () => {
  test("calls it with the token and the request", async () => {
    const authenticator = bearer((token, asked) =>
      token === "x" && asked.url === "/tasks" ? Promise.resolve(bob) : undefined,
    );
    expect(await authenticator.authenticate(withHeader("Bearer x"), place)).toMatchObject(bob);
    expect(await refusal("Bearer y", authenticator)).toMatchObject({ code: "Unauthenticated" });
  });

  test("does not call it with text that is not a token", async () => {
    let asked = 0;
    const authenticator = bearer(() => (asked++, bob));
    await refusal("Bearer a, b", authenticator);
    await refusal(undefined, authenticator);
    expect(asked).toBe(0);
  });

  test("lets it reject with its own error", async () => {
    const authenticator = bearer(() => Promise.reject(new A2AError("PermissionDenied", "Not today")));
    expect(await refusal("Bearer x", authenticator)).toMatchObject({ code: "PermissionDenied", message: "Not today" });
  });
});
