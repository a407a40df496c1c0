import { describe, expect, it } from "vitest";
import { connect } from "../../src/client/index.ts";
import {
  apiKeyCredential,
  basicCredential,
  bearerToken,
  type CredentialProvider,
} from "../../src/credentials/index.ts";
import type { AgentCard } from "../../src/model/index.ts";
import { cardOf, jsonRpcAt, listen, restAt } from "../client/support.ts";
import { agentWith, errorOf, refuse } from "./support.ts";

/** Tests to which targets a client sends credentials, and how it handles rejected credentials (A2A 1.0 §7.3). */

const secret = "secret-of-a-test-0123456789";
const bearerScheme = { bearer: { httpAuthSecurityScheme: { scheme: "Bearer" } } };
const need = [{ schemes: { bearer: { list: [] } } }];

describe("credentials are sent", () => {
  it("to no origin without TLS, except on loopback", async () => {
    const sent: string[] = [];
    const card = cardOf([jsonRpcAt("http://agent.example.com/a")], {
      securitySchemes: bearerScheme,
      securityRequirements: need,
    });
    const client = await connect(card, {
      credentials: [bearerToken(secret)],
      fetch: (url) => {
        sent.push(url);
        return Promise.reject(new Error("nothing may be sent"));
      },
    });
    const error = await errorOf(client.getTask("t1"));
    expect(error).toMatchObject({
      code: "InvalidParams",
      message: expect.stringContaining("does not use TLS") as string,
    });
    expect([sent, error.message.includes(secret)]).toEqual([[], false]);
  });

  it.each([undefined, "", 7])("never if they are missing: %j is rejected before anything is sent", async (unset) => {
    const agent = await agentWith(bearerScheme, (_, response) => refuse(response, "Bearer"));
    const given = unset as string;
    for (const credential of [bearerToken(given), bearerToken(async () => given)]) {
      const client = await connect(agent.url, { credentials: [credential] });
      const message = expect.stringContaining("Is an environment variable not set?") as string;
      expect(await errorOf(client.getTask("t1"))).toMatchObject({ code: "InvalidParams", message });
    }
    expect(agent.calls).toEqual([]);
    const single = connect(agent.url, { credentials: bearerToken(secret) as never });
    await expect(single).rejects.toThrow("credentials must be a list");
  });

  it("to no origin that only the card names, unless the user names it", async () => {
    const agent = await agentWith(bearerScheme, (_, response) => refuse(response, "Bearer"));
    const home = await listen((_, response) => {
      response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(agent.card));
    });
    const asked: string[] = [];
    const provider: CredentialProvider = {
      supports: () => true,
      credentials: async (_, target) => {
        asked.push(target.url);
        return { headers: { authorization: `Bearer ${secret}` } };
      },
    };
    const client = await connect(home, { credentials: [provider] });
    const error = await errorOf(client.getTask("t1"));
    expect(error).toMatchObject({ code: "Unauthenticated", metadata: { withheldFrom: agent.url } });
    expect(asked).toEqual([]);
    const trusting = await connect(home, { credentials: [provider], credentialOrigins: [agent.url] });
    await errorOf(trusting.getTask("t1"));
    expect(agent.calls.map(({ headers }) => headers.authorization)).toEqual([undefined, `Bearer ${secret}`]);
  });

  it("never with the request for the card", async () => {
    const asked: (string | undefined)[] = [];
    const url = await listen((request, response) => {
      asked.push(request.headers.authorization);
      const card = cardOf([restAt(`http://${request.headers.host}`)], {
        securitySchemes: bearerScheme,
        securityRequirements: need,
      });
      response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(card));
    });
    await connect(url, { credentials: [bearerToken(secret)] });
    expect(asked).toEqual([undefined]);
  });

  it("beside the user's own cookies and query, and encoded", async () => {
    const agent = await agentWith({
      cookie: { apiKeySecurityScheme: { location: "cookie", name: "session" } },
      query: { apiKeySecurityScheme: { location: "query", name: "k&y" } },
      people: { httpAuthSecurityScheme: { scheme: "bAsIc" } },
    });
    const client = await connect(agent.url, {
      headers: { cookie: "mine=1" },
      credentials: [
        apiKeyCredential("one", { scheme: "cookie" }),
        apiKeyCredential("a b&c", { scheme: "query" }),
        basicCredential("ada", "pässword"),
      ],
    });
    await client.getTask("t1");
    expect(agent.calls).toMatchObject([
      {
        url: "/?k%26y=a+b%26c",
        headers: {
          cookie: "mine=1; session=one",
          authorization: `Basic ${Buffer.from("ada:pässword").toString("base64")}`,
        },
      },
    ]);
  });

  it("not if they would end a header or a cookie, and the error does not show them", async () => {
    for (const [location, key] of [
      ["header", `${secret}\r\nx: y`],
      ["header", `${secret}λ`],
      ["cookie", `${secret}; admin=1`],
    ] as const) {
      const agent = await agentWith({ key: { apiKeySecurityScheme: { location, name: "x-key" } } });
      const client = await connect(agent.url, { credentials: [apiKeyCredential(key)] });
      const error = await errorOf(client.getTask("t1"));
      expect(error.code).toBe("InvalidParams");
      expect(JSON.stringify([error.message, error.stack, String(error.cause)])).not.toContain(secret);
      expect(agent.calls).toEqual([]);
    }
    expect(() => basicCredential("a:b", secret)).toThrow("must not contain a colon");
  });
});

describe("a rejection", () => {
  it("is final if there are no other credentials, and no second request is sent", async () => {
    const agent = await agentWith(bearerScheme, (_, response) => refuse(response, 'Bearer error="invalid_token"'));
    const client = await connect(agent.url, { credentials: [bearerToken(secret)] });
    await expect(client.getTask("t1")).rejects.toMatchObject({ code: "Unauthenticated" });
    expect(agent.calls).toHaveLength(1);
  });

  it("calls the function for the secret again, once for all calls rejected together", async () => {
    let current = "one";
    const agent = await agentWith(bearerScheme, (request, response) => {
      if (request.headers.authorization === "Bearer two") return false;
      // Simulates that another process has just stored a new token in the vault.
      current = "two";
      return refuse(response, "Bearer");
    });
    const client = await connect(agent.url, { credentials: [bearerToken(() => current)] });
    await Promise.all([client.getTask("t1"), client.getTask("t1"), client.getTask("t1")]);
    expect(agent.calls.at(-1)?.headers.authorization).toBe("Bearer two");
  });

  it("is repeated only once, even if the function returns another secret each time", async () => {
    const agent = await agentWith(bearerScheme, (_, response) => refuse(response, "Bearer"));
    let count = 0;
    const client = await connect(agent.url, { credentials: [bearerToken(() => `token-${count++}`)] });
    await expect(client.getTask("t1")).rejects.toMatchObject({ code: "Unauthenticated" });
    expect(agent.calls).toHaveLength(2);
  });

  it("of a card without requirements chooses by its challenge", async () => {
    const agent = await agentWith(
      {},
      (request, response) => request.headers.authorization === undefined && refuse(response, 'Basic realm="x", Bearer'),
      [],
    );
    const client = await connect(agent.url, { credentials: [bearerToken(secret)] });
    await client.getTask("t1");
    expect(agent.calls.map(({ headers }) => headers.authorization)).toEqual([undefined, `Bearer ${secret}`]);
  });

  it("of a 403 without a scope does not select other credentials (RFC 6750 §3.1)", async () => {
    const agent = await agentWith(bearerScheme, (_, response) => refuse(response, "Bearer", 403));
    let count = 0;
    const client = await connect(agent.url, { credentials: [bearerToken(async () => `token-${count++}`)] });
    await expect(client.getTask("t1")).rejects.toMatchObject({ code: "PermissionDenied" });
    expect(agent.calls).toHaveLength(1);
  });

  it("of a provider is passed on unchanged, and ends nothing else", async () => {
    const agent = await agentWith(bearerScheme);
    let fail = true;
    const token = async () => {
      if (fail) throw new Error("the vault is closed");
      return secret;
    };
    const client = await connect(agent.url, { credentials: [bearerToken(token)] });
    await expect(client.getTask("t1")).rejects.toThrow("the vault is closed");
    fail = false;
    await client.getTask("t1");
    expect(agent.calls).toHaveLength(1);
  });
});

describe("an extended card (A2A 1.0 §3.1.11)", () => {
  const extended = async (more: Partial<AgentCard>) => {
    const agent = await agentWith(
      { ...bearerScheme, key: { apiKeySecurityScheme: { location: "header", name: "x-key" } } },
      (request, response) => {
        if (request.headers["a2a-extensions"] !== "card") return false;
        const card = { ...cardOf([jsonRpcAt("https://a.example.com")]), ...more };
        response.writeHead(200, { "content-type": "application/json" });
        response.end(JSON.stringify({ jsonrpc: "2.0", id: 1, result: card }));
        return true;
      },
      need,
      { extendedAgentCard: true },
    );
    const client = await connect(agent.url, { credentials: [bearerToken(secret), apiKeyCredential("the-key")] });
    await client.getExtendedAgentCard({ extensions: ["card"] });
    await client.getTask("t1");
    return [client.card.capabilities, agent.calls.at(-1)?.headers] as const;
  };

  it("replaces the card, and says how to authenticate", async () => {
    const key = { apiKeySecurityScheme: { location: "header", name: "x-other" } };
    const [capabilities, headers] = await extended({
      capabilities: { pushNotifications: true },
      securitySchemes: { key },
      securityRequirements: [{ schemes: { key: { list: [] } } }],
    });
    expect(capabilities).toEqual({ pushNotifications: true });
    expect(headers).toMatchObject({ "x-other": "the-key" });
    expect(headers).not.toHaveProperty("authorization");
  });

  it("keeps the working credentials if the extended card requires none, or some that the user does not have", async () => {
    for (const name of ["none", "mtls"]) {
      const schemes = name === "none" ? {} : { securitySchemes: { mtls: { mtlsSecurityScheme: {} } } };
      const securityRequirements = name === "none" ? [] : [{ schemes: { mtls: { list: [] } } }];
      const [, headers] = await extended({ ...schemes, securityRequirements });
      expect(headers).toMatchObject({ authorization: `Bearer ${secret}` });
    }
  });
});

describe("an untrusted card", () => {
  it("with names of objects, unknown schemes and thousands of requirements is read", async () => {
    const schemes = JSON.parse('{"__proto__":{"httpAuthSecurityScheme":{"scheme":"Bearer"}}}') as typeof bearerScheme;
    const many = Array.from({ length: 5_000 }, (_, at) => ({ schemes: { [`s${at}`]: { list: [] } } }));
    const own = ["constructor", "toString"].map((name) => ({ schemes: { [name]: { list: [] } } }));
    for (const requirements of [own, many, [...need, {}]]) {
      const agent = await agentWith({ ...schemes, ...bearerScheme }, undefined, requirements);
      const client = await connect(agent.url, { credentials: [bearerToken(secret)] });
      await client.getTask("t1");
      expect(agent.calls).toHaveLength(1);
    }
  });

  it("cannot make the client send a key as a forbidden header", async () => {
    for (const name of ["x\r\ny", "", "a b", "ü"]) {
      const agent = await agentWith({ key: { apiKeySecurityScheme: { location: "header", name } } }, (_, response) =>
        refuse(response, "Bearer"),
      );
      const client = await connect(agent.url, { credentials: [apiKeyCredential(secret)] });
      const error = await errorOf(client.getTask("t1"));
      expect(error).toMatchObject({
        code: "Unauthenticated",
        message: expect.stringContaining("None of the credentials") as string,
      });
    }
  });
});
