import { createHash } from "node:crypto";
import { assert, asyncProperty, constantFrom, dictionary, oneof, record, string, tuple } from "fast-check";
import { describe, expect, onTestFinished, test } from "vitest";
import {
  allOf,
  anyOf,
  anyone,
  apiKey,
  basic,
  bearer,
  type Authenticator,
  type VerifyToken,
} from "../../src/auth/index.ts";
import { createHandler } from "@parley/server/internal/handler";
import { defineAgent } from "@parley/server/internal/agent/index";
import { memoryStore } from "@parley/server/internal/store/index";
import { A2AError } from "../../src/model/index.ts";
import { LinesLogger, request } from "../transport/support.ts";

/* Tests untrusted requests, and invalid results from an operator's function. */

const place = {
  resources: ["https://agents.example.com"],
  url: "https://agents.example.com/",
  metadataUrl: "https://agents.example.com/.well-known/oauth-protected-resource",
};

const right = "right-one";
const hash = `sha256:${createHash("sha256").update(right).digest("base64")}`;
const known = { [hash]: { subject: "ada" } };
const header = apiKey(known);
const query = apiKey(known, { name: "query", query: "key" });
const cookie = apiKey(known, { name: "cookie", cookie: "key" });
const token = bearer(known, { realm: 'a "realm"' });
const password = basic((name, word) => (word === right ? { subject: name || "nobody" } : undefined));

const everything: readonly Authenticator[] = [
  header,
  query,
  cookie,
  token,
  password,
  anyOf(header, query, cookie, token, password),
  allOf(anyOf(token, password), anyOf(header, cookie)),
  anyOf(allOf(header, token), cookie, anyone()),
];

/** Text that resembles a credential, or that does not resemble one at all. */
const words = oneof(
  string({ unit: "binary", maxLength: 40 }),
  constantFrom(right, "", " ", ":", "=", '"', "\\", ",", ";", "%", "\r\n", "\0", "__proto__", "sha256:", "é", "🦊"),
);
const headerText = oneof(
  words,
  tuple(constantFrom("Bearer ", "bearer", "Basic ", "BASIC  ", "DPoP ", "key=", ";key=", '"'), words).map((parts) =>
    parts.join(""),
  ),
  words.map((text) => `Basic ${Buffer.from(text).toString("base64")}`),
);

describe("any request (RFC 9110 §11)", () => {
  test("yields a caller, or a rejection with a valid challenge that contains nothing of the request", async () => {
    const asked = record({
      headers: dictionary(
        constantFrom("authorization", "x-api-key", "cookie", "origin", "host", "sec-fetch-site"),
        headerText,
      ),
      url: words.map((text) => `/tasks?key=${text}`),
    });
    await assert(
      asyncProperty(asked, async ({ headers, url }) => {
        for (const authenticator of everything) {
          const sent = request("POST", url, { headers });
          expect(typeof (authenticator.hasCredentials?.(sent) ?? true)).toBe("boolean");
          const found = await Promise.resolve(authenticator.authenticate(sent, place)).catch((error: unknown) => error);
          if (!(found instanceof A2AError)) {
            expect(found).toMatchObject({ subject: expect.stringMatching(/./) as unknown });
            continue;
          }
          expect(["Unauthenticated", "PermissionDenied"]).toContain(found.code);
          expect(found.challenge ?? "").toMatch(/^[\x20-\x7e]*$/);
          expect(found.challenge ?? "").not.toContain(right);
          expect(found.message).not.toContain(right);
        }
      }),
      { numRuns: 300 },
    );
  });

  test("a long header that is nearly valid takes no longer", async () => {
    const long = "a".repeat(60_000);
    for (const text of [
      `Bearer ${" ".repeat(60_000)}`,
      `Bearer ${long}=`,
      `Basic ${long}`,
      `key=${long}`,
      `"${long}`,
    ]) {
      for (const authenticator of everything.slice(0, 6)) {
        const sent = request("POST", `/tasks?key=${long}`, {
          headers: { authorization: text, cookie: text, "x-api-key": text },
        });
        await expect(Promise.resolve(authenticator.authenticate(sent, place))).rejects.toBeInstanceOf(A2AError);
      }
    }
  });
});

describe("an authenticator that does not return a caller", () => {
  const agent = defineAgent({
    name: "A",
    description: "-",
    version: "1",
    skills: [],
    onMessage: (turn) => turn.reply(""),
  });
  const custom = (found: unknown): Authenticator => ({
    securitySchemes: {},
    securityRequirements: [],
    authenticate: () => found as never,
  });

  test.each<[string, (found: unknown) => Authenticator]>([
    ["bearer()", (found) => bearer((() => found) as VerifyToken)],
    ["apiKey()", (found) => apiKey((() => found) as VerifyToken)],
    ["anyOf()", (found) => anyOf(custom(found), bearer({}))],
    ["a custom authenticator", custom],
  ])("an invalid caller is rejected, and the log says why: %s", async (_, make) => {
    for (const found of [{}, { subject: "" }, { subject: 7 }, { id: "ada" }, true, "ada"]) {
      const logger = new LinesLogger();
      const handler = createHandler(agent, {
        publicUrl: "http://localhost",
        store: memoryStore(),
        authenticator: make(found),
        logger,
      });
      onTestFinished(() => handler.close());
      const answer = await handler.fetch(
        new Request("http://localhost/tasks", { headers: { authorization: "Bearer x", "x-api-key": "x" } }),
      );
      expect([found, answer.status]).toEqual([found, 500]);
      expect(String(logger.lines[0]?.fields?.["cause"])).toContain("returned a caller without a subject");
    }
  });
});
