import { createHmac, generateKeyPairSync, sign, verify } from "node:crypto";
import { Webhook } from "standardwebhooks";
import { describe, expect, test } from "vitest";
import { isWebhookSecret, signWebhook, verifyWebhook, webhookKey } from "../../src/webhooks/index.ts";

const now = 1_790_000_000_000;
const timestamp = now / 1000;
const id = "9c1f_7";
const body = '{"statusUpdate":{"taskId":"t","status":{"state":"TASK_STATE_COMPLETED","message":"Grüße 🌍\\u0000"}}}';
const secret = `whsec_${Buffer.alloc(24, 7).toString("base64")}`;
const other = `whsec_${Buffer.alloc(64, 8).toString("base64")}`;

const headersOf = (signature: string, at: number | string = timestamp, name = id) => ({
  "webhook-id": name,
  "webhook-timestamp": String(at),
  "webhook-signature": signature,
});

const received = (headers: Readonly<Record<string, string>>, text = body) => ({
  header: (name: string) => headers[name],
  body: text,
});

/** Creates an Ed25519 key pair with node:crypto, as the two texts of Standard Webhooks. */
function pair() {
  const { privateKey, publicKey } = generateKeyPairSync("ed25519");
  const { d = "", x = "" } = privateKey.export({ format: "jwk" });
  const [seed, open] = [Buffer.from(d, "base64url"), Buffer.from(x, "base64url")];
  return {
    privateKey,
    publicKey,
    whsk: `whsk_${seed.toString("base64")}`,
    whskPair: `whsk_${Buffer.concat([seed, open]).toString("base64")}`,
    whpk: `whpk_${open.toString("base64")}`,
  };
}

const keys = (...texts: string[]) => Promise.all(texts.map(webhookKey));

describe("v1: HMAC-SHA256 with a shared secret (Standard Webhooks)", () => {
  test("the library of Standard Webhooks verifies our signatures", async () => {
    const at = Math.floor(Date.now() / 1000);
    const signature = await signWebhook(await keys(secret), { id, timestamp: at, body });
    expect(new Webhook(secret).verify(body, headersOf(signature, at))).toEqual(JSON.parse(body));
    expect(() => new Webhook(other).verify(body, headersOf(signature, at))).toThrow("No matching signature");
  });

  test("we verify its signatures, and sign with the same bytes", async () => {
    const signature = new Webhook(secret).sign(id, new Date(now), body);
    expect(await signWebhook(await keys(secret), { id, timestamp, body })).toBe(signature);
    const verified = await verifyWebhook(await keys(secret), received(headersOf(signature)), { now });
    expect(verified).toEqual({ id, timestamp });
  });

  test("the bytes are those of node:crypto", async () => {
    const mac = createHmac("sha256", Buffer.alloc(24, 7)).update(`${id}.${timestamp}.${body}`).digest("base64");
    expect(await signWebhook(await keys(secret), { id, timestamp, body })).toBe(`v1,${mac}`);
  });

  test("during a rotation both secrets sign, and either verifies", async () => {
    const at = Math.floor(Date.now() / 1000);
    const signature = await signWebhook(await keys(secret, other), { id, timestamp: at, body });
    for (const each of [secret, other]) {
      expect(new Webhook(each).verify(body, headersOf(signature, at))).toEqual(JSON.parse(body));
      await verifyWebhook(await keys(each), received(headersOf(signature, at)));
    }
  });
});

describe("v1a: Ed25519 (Standard Webhooks)", () => {
  test("a signature matches the reference implementation, in both directions", async () => {
    // These values come from the server tests of Svix, which introduced v1a.
    const whsk = "whsk_6Xb/dCcHpPea21PS1N9VY/NZW723CEc77N4rJCubMbfVKIDij2HKpMKkioLlX0dRqSKJp4AJ6p9lMicMFs6Kvg==";
    const whpk = "whpk_1SiA4o9hyqTCpIqC5V9HUakiiaeACeqfZTInDBbOir4=";
    const golden = { id: "msg_p5jXN8AQM9LWM0D4loKWxJek", timestamp: 1_614_265_330, body: '{"test": 2432232314}' };
    const signature = "v1a,hnO3f9T8Ytu9HwrXslvumlUpqtNVqkhqw/enGzPCXe5BdqzCInXqYXFymVJaA7AZdpXwVLPo3mNl8EM+m7TBAg==";
    expect(await signWebhook(await keys(whsk), golden)).toBe(signature);
    const webhook = received(headersOf(signature, golden.timestamp, golden.id), golden.body);
    await verifyWebhook(await keys(whpk), webhook, { now: golden.timestamp * 1000 });
  });

  test("node:crypto verifies our signatures with either form of whsk_, and we verify its signatures", async () => {
    const { privateKey, publicKey, whsk, whskPair, whpk } = pair();
    const content = Buffer.from(`${id}.${timestamp}.${body}`);
    for (const text of [whsk, whskPair]) {
      const [version, base64 = ""] = (await signWebhook(await keys(text), { id, timestamp, body })).split(",");
      expect(version).toBe("v1a");
      expect(verify(null, content, publicKey, Buffer.from(base64, "base64"))).toBe(true);
    }
    const signature = `v1a,${sign(null, content, privateKey).toString("base64")}`;
    await verifyWebhook(await keys(whpk), received(headersOf(signature)), { now });
  });

  test("a whsk_ whose public key belongs to another private key is rejected", async () => {
    const [one, two] = [pair(), pair()];
    const mixed = Buffer.concat([
      Buffer.from(one.whsk.slice(5), "base64"),
      Buffer.from(two.whpk.slice(5), "base64"),
    ]).toString("base64");
    await expect(webhookKey(`whsk_${mixed}`)).rejects.toMatchObject({ code: "InvalidParams" });
  });

  test("a v1 signature never counts as v1a, nor the reverse", async () => {
    const { whpk, whsk } = pair();
    const signature = await signWebhook(await keys(secret, whsk), { id, timestamp, body });
    const swapped = signature.replace("v1,", "v0,").replace("v1a,", "v1,");
    await expect(verifyWebhook(await keys(secret, whpk), received(headersOf(swapped)), { now })).rejects.toThrow(
      "No signature of the webhook is by a known key",
    );
  });
});

describe("verifyWebhook() rejects", () => {
  const refusal = async (headers: Readonly<Record<string, string>>, text = body, tolerance?: number) =>
    verifyWebhook(await keys(secret), received(headers, text), { now, ...(tolerance !== undefined && { tolerance }) });
  const signed = async (changed: Partial<{ id: string; timestamp: number; body: string }> = {}) =>
    signWebhook(await keys(secret), { id, timestamp, body, ...changed });

  test("a body, an id or a timestamp that was changed", async () => {
    const signature = await signed();
    const reason = "No signature of the webhook is by a known key";
    await expect(refusal(headersOf(signature), `${body} `)).rejects.toThrow(reason);
    await expect(refusal(headersOf(signature, timestamp + 1))).rejects.toThrow(reason);
    await expect(refusal(headersOf(signature, `0${timestamp}`))).rejects.toThrow(reason);
    await expect(refusal(headersOf(signature, timestamp, `${id}1`))).rejects.toThrow(reason);
    await expect(refusal(headersOf(signature, timestamp, id.slice(0, -1)))).rejects.toThrow(reason);
  });

  test("a timestamp that is too old or too new, in either direction by its tolerance", async () => {
    for (const [offset, reason] of [
      [-301, "too old"],
      [301, "from the future"],
    ] as const) {
      const at = timestamp + offset;
      const headers = headersOf(await signed({ timestamp: at }), at);
      await expect(refusal(headers)).rejects.toThrow(reason);
      await refusal(headers, body, 301);
    }
    await refusal(headersOf(await signed({ timestamp: timestamp - 300 }), timestamp - 300));
  });

  test.each([
    ["no headers at all", {}],
    ["no id", { "webhook-id": "" }],
    ["an id with a dot, which could belong to the timestamp", { "webhook-id": "a.1" }],
    ["an id with a space", { "webhook-id": "a b" }],
    ["an id of 257 characters", { "webhook-id": "a".repeat(257) }],
    ["a timestamp that is not a number", { "webhook-timestamp": "soon" }],
    ["a timestamp with a fraction", { "webhook-timestamp": "1790000000.5" }],
    ["a negative timestamp", { "webhook-timestamp": "-1" }],
    ["a timestamp beyond all times", { "webhook-timestamp": "9".repeat(400) }],
    ["no signature", { "webhook-signature": "" }],
    ["a signature of another version", { "webhook-signature": `v2,${Buffer.alloc(32).toString("base64")}` }],
    ["a signature that is too short", { "webhook-signature": "v1,AAAA" }],
    ["a signature that is not base64", { "webhook-signature": `v1,${"é".repeat(44)}` }],
    ["a signature without version", { "webhook-signature": Buffer.alloc(32).toString("base64") }],
    ["nothing but spaces", { "webhook-signature": " ".repeat(16_000) }],
    ["nothing but commas", { "webhook-signature": "v1,".repeat(5000) }],
  ])("%s", async (_what, headers) => {
    const given = Object.keys(headers).length === 0 ? {} : { ...headersOf(await signed()), ...headers };
    await expect(refusal(given)).rejects.toMatchObject({ code: "Unauthenticated" });
  });

  test("more signatures than a rotation needs, so no header costs a receiver much work", async () => {
    const wrong = `v1,${Buffer.alloc(32).toString("base64")}`;
    await refusal(headersOf(`${`${wrong} `.repeat(7)}${await signed()}`));
    await expect(refusal(headersOf(`${`${wrong} `.repeat(8)}${await signed()}`))).rejects.toThrow(
      "too many signatures",
    );
  });

  test("everything without a key", async () => {
    await expect(verifyWebhook([], received(headersOf(await signed())), { now })).rejects.toMatchObject({
      code: "Unauthenticated",
    });
  });
});

describe("keys", () => {
  test.each([
    [""],
    ["whsec_"],
    ["whsec"],
    [Buffer.alloc(24).toString("base64")],
    [`whsec_${Buffer.alloc(23).toString("base64")}`],
    [`whsec_${Buffer.alloc(65).toString("base64")}`],
    [`whsec_${Buffer.alloc(32).toString("base64").replace("=", "")}`],
    [`whsec_ ${Buffer.alloc(24).toString("base64")}`],
    [`whsec_${Buffer.alloc(24).toString("base64")}\n`],
    [`WHSEC_${Buffer.alloc(24).toString("base64")}`],
    [`whsec_${"-_".repeat(16)}`],
    [`whsec_${"A".repeat(1_000_000)}`],
    [`whsk_${Buffer.alloc(33).toString("base64")}`],
    [`whpk_${Buffer.alloc(64).toString("base64")}`],
  ])("%.40j is rejected, and the error does not show it", async (text) => {
    expect(isWebhookSecret(text)).toBe(false);
    const error = await webhookKey(text).catch((thrown: unknown) => thrown as Error);
    expect(error).toMatchObject({ code: "InvalidParams" });
    if (text.length > 10) expect((error as Error).message).not.toContain(text.slice(6));
  });

  test("secrets of 24 to 64 bytes are accepted", () => {
    expect([secret, other].map(isWebhookSecret)).toEqual([true, true]);
  });
});

describe("signWebhook() rejects", () => {
  test.each([
    ["an id with a dot", { id: "a.b" }],
    ["an empty id", { id: "" }],
    ["an id with a line break", { id: "a\r\nx: y" }],
    ["a timestamp in milliseconds with a fraction", { timestamp: 1.5 }],
    ["a timestamp that is not a number", { timestamp: Number.NaN }],
    ["a negative timestamp", { timestamp: -1 }],
  ])("%s", async (_what, changed) => {
    await expect(signWebhook(await keys(secret), { id, timestamp, body, ...changed })).rejects.toMatchObject({
      code: "InvalidParams",
    });
  });
});
