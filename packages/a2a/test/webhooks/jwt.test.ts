import { createHash, createPublicKey, generateKeyPairSync, sign, verify } from "node:crypto";
import { describe, expect, test } from "vitest";
import {
  ed25519Key,
  publicJwk,
  signWebhookToken,
  verifyWebhookToken,
  type WebhookTokenContent,
} from "../../src/webhooks/index.ts";

const pair = generateKeyPairSync("ed25519");
const { d = "", x = "" } = pair.privateKey.export({ format: "jwk" });
const key = await ed25519Key(Buffer.from(d, "base64url"));
const jwk = await publicJwk(new Uint8Array(Buffer.from(x, "base64url")));
const keySet = { keys: [jwk] };

const content: WebhookTokenContent = {
  issuer: "https://agents.example.com",
  audience: "https://client.example/hook",
  id: "stream_1",
  timestamp: 1_790_000_000,
  taskId: "task-1",
  body: '{"task":{"id":"task-1","name":"Grüße"}}',
};
const now = content.timestamp * 1000;
const expected = { issuer: content.issuer, audience: content.audience, body: content.body, now };

const parts = (token: string) => token.split(".").map((part) => Buffer.from(part, "base64url"));
const json = (bytes: Buffer | undefined) => JSON.parse(String(bytes)) as Record<string, unknown>;

/** Creates a JWT that node:crypto signs with the correct key. */
function forged(header: object, payload: object): string {
  const input = [header, payload].map((each) => Buffer.from(JSON.stringify(each)).toString("base64url")).join(".");
  return `${input}.${sign(null, Buffer.from(input), pair.privateKey).toString("base64url")}`;
}

const claims = {
  iss: content.issuer,
  aud: content.audience,
  iat: content.timestamp,
  exp: content.timestamp + 300,
  jti: content.id,
  taskId: content.taskId,
  request_body_sha256: createHash("sha256").update(content.body).digest("hex"),
};
const header = { alg: "EdDSA", typ: "JWT", kid: jwk.kid };

describe("the JWT of a webhook, as the guide of A2A describes it (docs/topics/streaming-and-async)", () => {
  test("states its sender, receiver, time, task and body; node:crypto verifies it", async () => {
    const token = await signWebhookToken(key, jwk.kid, content);
    const [head, payload, signature] = parts(token);
    expect(json(head)).toEqual(header);
    expect(json(payload)).toEqual(claims);
    const open = createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x }, format: "jwk" });
    const input = Buffer.from(token.slice(0, token.lastIndexOf(".")));
    expect(verify(null, input, open, signature as Buffer)).toBe(true);
    expect(await verifyWebhookToken(token, keySet, expected)).toEqual({ id: content.id, taskId: content.taskId });
  });

  test("a JWT that node:crypto signs is verified", async () => {
    expect(await verifyWebhookToken(forged(header, claims), keySet, expected)).toMatchObject({ taskId: "task-1" });
  });

  test("the receiver may have several addresses, and several senders", async () => {
    const token = await signWebhookToken(key, jwk.kid, content);
    const several = {
      ...expected,
      issuer: ["https://other.example", content.issuer],
      audience: [content.audience, "https://client.example/other"],
    };
    expect(await verifyWebhookToken(token, keySet, several)).toMatchObject({ taskId: "task-1" });
  });
});

describe("verifyWebhookToken() rejects a JWT", () => {
  const refused = async (token: string, options: Partial<typeof expected> = {}, set: typeof keySet = keySet) => {
    await expect(verifyWebhookToken(token, set, { ...expected, ...options })).rejects.toMatchObject({
      code: "Unauthenticated",
    });
  };

  test.each([
    ["of another sender", { iss: "https://evil.example" }],
    ["for another receiver", { aud: "https://evil.example/hook" }],
    ["that has expired", { exp: content.timestamp - 61 }],
    ["that lives for longer than 5 minutes", { iat: content.timestamp - 400, exp: content.timestamp + 3600 }],
    ["from the future", { iat: content.timestamp + 120 }],
    ["that names no time", { iat: undefined }],
    ["that never expires", { exp: undefined }],
    ["without an id", { jti: undefined }],
    ["without a task", { taskId: undefined }],
    ["whose task is not text", { taskId: 7 }],
    ["without a hash of the body", { request_body_sha256: undefined }],
    ["of another body", { request_body_sha256: createHash("sha256").update("{}").digest("hex") }],
  ])("%s", async (_what, changed) => {
    await refused(forged(header, { ...claims, ...changed }));
  });

  test("whose body was changed in transit", async () => {
    await refused(await signWebhookToken(key, jwk.kid, content), { body: `${content.body} ` });
  });

  test("that is not signed, or signed with the public key as a shared secret", async () => {
    await refused(forged({ alg: "none" }, claims));
    await refused(forged({ alg: "HS256", kid: jwk.kid }, claims));
    await refused(`${forged(header, claims).split(".").slice(0, 2).join(".")}.`);
  });

  test("with an unknown key", async () => {
    const other = await publicJwk(new Uint8Array(32).fill(9));
    await refused(forged(header, claims), {}, { keys: [other] });
    await refused(forged({ ...header, kid: "unknown" }, claims));
    await refused(forged(header, claims), {}, { keys: [] });
  });

  test.each([[""], ["a"], ["a.b.c"], ["é.é.é"], [".".repeat(10_000)], ["A".repeat(100_000)]])(
    "that is malformed: %.20j",
    async (text) => refused(text),
  );
});
