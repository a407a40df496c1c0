import { createHash, createPrivateKey, createPublicKey, hkdfSync, verify } from "node:crypto";
import { Webhook } from "standardwebhooks";
import { describe, expect, test } from "vitest";
import { createSigner, keySetOf, type PushKey, pushKeyring } from "../../src/push/keys.ts";
import { verifyWebhook, verifyWebhookToken, webhookKey } from "@parley/a2a/internal/webhooks/index";

const one = new Uint8Array(32).fill(1);
const two = new Uint8Array(32).fill(2);
const signed = { id: "stream_1", timestamp: 1_790_000_000, body: '{"task":{"id":"t"}}' };
const now = signed.timestamp * 1000;
const issuer = "https://agents.example.com";

/** Returns the public key that node:crypto derives from the same bytes. */
function expectedKey(bytes: Uint8Array): string {
  const seed = Buffer.from(hkdfSync("sha256", bytes, new Uint8Array(), "parley push sign 1", 32));
  const der = Buffer.concat([Buffer.from("302e020100300506032b657004220420", "hex"), seed]);
  const { x = "" } = createPublicKey(createPrivateKey({ key: der, format: "der", type: "pkcs8" })).export({
    format: "jwk",
  });
  return x;
}

const received = (signature: string) => {
  const headers: Readonly<Record<string, string>> = {
    "webhook-id": signed.id,
    "webhook-timestamp": String(signed.timestamp),
    "webhook-signature": signature,
  };
  return { header: (name: string) => headers[name], body: signed.body };
};

describe("keys of a server (RFC 5869, RFC 8037)", () => {
  test("are derived by HKDF from the bytes of `push.keys`, the same in every process", async () => {
    const { keys } = await keySetOf(pushKeyring([one, two]));
    expect(keys.map(({ x }) => x)).toEqual([one, two].map(expectedKey));
    expect(await keySetOf(pushKeyring([one, two]))).toEqual({ keys });
  });

  test("are published in the key set as public keys only, by their thumbprints (RFC 7638)", async () => {
    const { keys } = await keySetOf(pushKeyring([one]));
    const x = expectedKey(one);
    const thumbprint = createHash("sha256").update(`{"crv":"Ed25519","kty":"OKP","x":"${x}"}`).digest("base64url");
    const whpk = `whpk_${Buffer.from(x, "base64url").toString("base64")}`;
    expect(keys).toEqual([{ kty: "OKP", crv: "Ed25519", x, kid: thumbprint, use: "sig", alg: "EdDSA", whpk }]);
  });

  test("cannot be exported if they are secret", async () => {
    const [{ seal, sign }] = await pushKeyring([one])();
    expect([seal.extractable, sign.extractable]).toEqual([false, false]);
  });

  test("open only their own sealed values", async () => {
    const [first, second] = await pushKeyring([one, two])();
    const iv = new Uint8Array(12);
    const sealed = await crypto.subtle.encrypt({ name: "AES-GCM", iv }, first.seal, one);
    expect(new Uint8Array(await crypto.subtle.decrypt({ name: "AES-GCM", iv }, first.seal, sealed))).toEqual(one);
    await expect(
      crypto.subtle.decrypt({ name: "AES-GCM", iv }, (second as PushKey).seal, sealed),
    ).rejects.toHaveProperty("name", "OperationError");
  });
});

describe("the signer of a server", () => {
  test("signs v1a with each of its keys, so either public key verifies during a rotation (Standard Webhooks)", async () => {
    const keyring = pushKeyring([two, one]);
    const signature = await createSigner(keyring, issuer).signature(signed);
    const { keys } = await keySetOf(keyring);
    expect(signature.split(" ").map((each) => each.slice(0, 4))).toEqual(["v1a,", "v1a,"]);
    const content = Buffer.from(`${signed.id}.${signed.timestamp}.${signed.body}`);
    for (const [at, { x, whpk }] of keys.entries()) {
      const bytes = Buffer.from(signature.split(" ")[at]?.slice(4) ?? "", "base64");
      const key = createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x }, format: "jwk" });
      expect(verify(null, content, key, bytes)).toBe(true);
      await verifyWebhook([await webhookKey(whpk)], received(signature), { now });
    }
  });

  test("also signs v1 if the config has a secret, and the library of Standard Webhooks verifies it", async () => {
    const secret = `whsec_${Buffer.alloc(32, 9).toString("base64")}`;
    const at = Math.floor(Date.now() / 1000);
    const signature = await createSigner(pushKeyring([one]), issuer).signature({ ...signed, timestamp: at }, secret);
    expect(signature).toMatch(/^v1,\S+ v1a,\S+$/);
    const headers = { "webhook-id": signed.id, "webhook-timestamp": String(at), "webhook-signature": signature };
    expect(new Webhook(secret).verify(signed.body, headers)).toEqual(JSON.parse(signed.body));
  });

  test("signs a JWT with its first key; the key set verifies it before and after a rotation", async () => {
    // The URL's query may contain a secret.
    const claims = { audience: "https://client.example/hook?secret=s", taskId: "t" };
    const before = await createSigner(pushKeyring([one]), issuer).jwt(signed, claims);
    const after = await createSigner(pushKeyring([two, one]), issuer).jwt(signed, claims);
    const keySet = await keySetOf(pushKeyring([two, one]));
    const expected = { issuer, audience: "https://client.example/hook", body: signed.body, now };
    for (const token of [before, after]) {
      expect(await verifyWebhookToken(token, keySet, expected)).toEqual({ id: signed.id, taskId: "t" });
    }
    await expect(verifyWebhookToken(after, await keySetOf(pushKeyring([one])), expected)).rejects.toMatchObject({
      code: "Unauthenticated",
    });
  });
});
