import { generateKeyPairSync } from "node:crypto";
import { describe, expect, test } from "vitest";
import { A2AError } from "../../src/model/index.ts";
import type { WebhookReceiverOptions, WebhookTrust } from "../../src/receiver/port.ts";
import { fakeClock } from "../../../testing/src/fake-clock.ts";
import { webhookReceiver } from "../../src/webhooks.ts";
import { publicJwk, signWebhookToken, webhookKey } from "../../src/webhooks/index.ts";
import { otherSecret, reasonOf, receive, secret, status, textLogger, url } from "./support.ts";

/* Tests which senders a receiver trusts, by `accept` and by the token. */

const event = status("TASK_STATE_WORKING");
const keySetUrl = "https://agents.example.com/.well-known/jwks.json";

/** Creates an Ed25519 key pair: the private key, the public key, and the public key for a key set. */
async function pair() {
  const { privateKey, publicKey } = generateKeyPairSync("ed25519");
  const seed = privateKey.export({ format: "der", type: "pkcs8" }).subarray(-32);
  const open = new Uint8Array(publicKey.export({ format: "der", type: "spki" }).subarray(-32));
  const whsk = `whsk_${seed.toString("base64")}`;
  return { whsk, whpk: `whpk_${Buffer.from(open).toString("base64")}`, jwk: await publicJwk(open) };
}

/** Starts a key set server that counts its requests. The test can change its keys. */
function keySets(keys: readonly object[]) {
  const server = {
    keys,
    asked: 0,
    down: false,
    fetch: async (): Promise<Response> => {
      server.asked += 1;
      if (server.down) throw new A2AError("ConnectionFailed");
      return Response.json({ keys: server.keys });
    },
  };
  return server;
}

describe("Standard Webhooks v1", () => {
  test("a delivery with the signature of the secret is accepted with 204", async () => {
    const { send, events, deliveries } = receive();
    const response = await send(event, { sequence: 1, headers: { "parley-attempt": "2", "parley-generation": "7" } });
    expect(response.status).toBe(204);
    expect(await response.text()).toBe("");
    expect(events).toEqual([event]);
    expect(deliveries).toEqual([
      { id: "config_1_1", taskId: "t1", trust: { secret }, sequence: 1, attempt: 2, generation: 7 },
    ]);
  });

  test("a delivery says which extensions were active when its webhook was registered, under either header name", async () => {
    const { send, deliveries } = receive();
    const [one, two] = ["https://example.com/extensions/one/v1", "https://example.com/extensions/two/v1"];
    await send(event, { id: "a", sequence: 1, headers: { "a2a-extensions": `${one}, ${two}, ${one}` } });
    await send(event, { id: "b", sequence: 2, headers: { "x-a2a-extensions": two } });
    expect(deliveries.map(({ extensions }) => extensions)).toEqual([[one, two], [two]]);
  });

  const now = Math.floor(Date.now() / 1000);
  test.each([
    ["another secret", { key: otherSecret }],
    ["no signature", { key: undefined }],
    ["another body than was signed", { tampered: JSON.stringify(status("TASK_STATE_FAILED")) }],
    ["a timestamp of six minutes ago", { timestamp: now - 360 }],
    ["a timestamp in six minutes", { timestamp: now + 360 }],
    ["another id than was signed", { headers: { "webhook-id": "other" } }],
    ["another timestamp than was signed", { headers: { "webhook-timestamp": String(now + 1) }, timestamp: now }],
    ["a signature that is not base64", { headers: { "webhook-signature": "v1,%%%" } }],
    ["a thousand signatures", { headers: { "webhook-signature": `v1,${"A".repeat(43)}= `.repeat(1000) } }],
  ])("a delivery with %s is rejected with 401", async (_name, sent) => {
    const { send, events } = receive();
    expect((await send(event, sent)).status).toBe(401);
    expect(events).toEqual([]);
  });

  test("any of several secrets is accepted, as during a rotation", async () => {
    const { send, deliveries } = receive({ accept: [{ secret: otherSecret }, { secret }] });
    expect((await send(event)).status).toBe(204);
    expect((await send(event, { key: otherSecret })).status).toBe(204);
    expect(deliveries.map(({ trust }) => trust)).toEqual([{ secret }, { secret: otherSecret }]);
  });
});

describe("Standard Webhooks v1a", () => {
  test("a signature by the public key is accepted, one by another key is rejected", async () => {
    const [ours, other] = [await pair(), await pair()];
    const { send } = receive({ accept: { publicKey: ours.whpk } });
    expect((await send(event, { key: ours.whsk })).status).toBe(204);
    expect((await send(event, { key: other.whsk })).status).toBe(401);
  });

  test("the keys of a key set are read once, and again for a new key", async () => {
    const [first, second] = [await pair(), await pair()];
    const clock = fakeClock();
    const server = keySets([{ kty: "RSA" }, first.jwk]);
    const { send } = receive({ accept: { keySet: keySetUrl }, fetch: server.fetch, clock });
    const timestamp = Math.floor(clock.now() / 1000);
    for (let count = 0; count < 3; count += 1) {
      expect((await send(event, { key: first.whsk, timestamp })).status).toBe(204);
    }
    expect(server.asked).toBe(1);

    server.keys = [first.jwk, second.jwk];
    // The receiver has read the key set too recently to read it again, so the sender must retry.
    const early = await send(event, { key: second.whsk, timestamp });
    expect([early.status, early.headers.get("retry-after")]).toEqual([503, "30"]);
    clock.advance(30_000);
    expect((await send(event, { key: second.whsk, timestamp })).status).toBe(204);
    expect(server.asked).toBe(2);
    clock.advance(30_000);
    expect((await send(event, { key: (await pair()).whsk, timestamp })).status).toBe(401);
  });

  test("a key that was removed from the key set is rejected after ten minutes", async () => {
    const [first, second] = [await pair(), await pair()];
    const clock = fakeClock();
    const server = keySets([first.jwk]);
    const { send } = receive({ accept: { keySet: keySetUrl }, fetch: server.fetch, clock });
    expect((await send(event, { key: first.whsk, timestamp: clock.now() / 1000 })).status).toBe(204);
    server.keys = [second.jwk];
    clock.advance(601_000);
    expect((await send(event, { key: first.whsk, timestamp: Math.floor(clock.now() / 1000) })).status).toBe(401);
  });

  test("a key set that hangs delays a delivery less than its sender waits, and the last keys stay valid", async () => {
    const { jwk, whsk } = await pair();
    const clock = fakeClock();
    const server = keySets([jwk]);
    let hangs = false;
    let hanging = 0;
    const fetch: typeof server.fetch = (...call) => {
      if (!hangs) return server.fetch(...call);
      hanging += 1;
      return new Promise(() => {});
    };
    const { send } = receive({ accept: { keySet: keySetUrl }, fetch, clock });
    const sent = () => send(event, { key: whsk, timestamp: Math.floor(clock.now() / 1000) });
    expect((await sent()).status).toBe(204);
    hangs = true;
    clock.advance(601_000);
    const late = sent();
    await expect.poll(() => hanging).toBe(1);
    clock.advance(3_000);
    expect((await late).status).toBe(204);
  });

  test("while the key set cannot be read, the last keys stay valid for a day; without keys the answer is 503", async () => {
    const ours = await pair();
    const clock = fakeClock();
    const server = keySets([ours.jwk]);
    server.down = true;
    const { send } = receive({ accept: { keySet: keySetUrl }, fetch: server.fetch, clock });
    const now = (): number => Math.floor(clock.now() / 1000);
    expect((await send(event, { key: ours.whsk, timestamp: now() })).status).toBe(503);
    clock.advance(31_000);
    server.down = false;
    expect((await send(event, { key: ours.whsk, timestamp: now() })).status).toBe(204);
    server.down = true;
    clock.advance(23 * 3_600_000);
    expect((await send(event, { key: ours.whsk, timestamp: now() })).status).toBe(204);
    clock.advance(3_600_000);
    expect((await send(event, { key: ours.whsk, timestamp: now() })).status).toBe(503);
  });

  test.each([
    ["no JSON", () => new Response("<html>")],
    ["an error", () => new Response(null, { status: 500 })],
    ["a list", () => Response.json([])],
    ["keys that are not objects", () => Response.json({ keys: [null, 1, "x"] })],
    ["a key that is too short", () => Response.json({ keys: [{ kty: "OKP", crv: "Ed25519", x: "AAAA" }] })],
  ])("a key set that is %s makes the receiver reject everything", async (_name, answer) => {
    const { send, events } = receive({ accept: { keySet: keySetUrl }, fetch: async () => answer() });
    const response = await send(event, { key: (await pair()).whsk });
    expect([401, 503]).toContain(response.status);
    expect(events).toEqual([]);
  });
});

describe("JWT", () => {
  const issuer = "https://agents.example.com";
  const accept: WebhookTrust = { jwt: { keySet: keySetUrl, issuer } };
  const body = JSON.stringify(event);
  const timestamp = Math.floor(Date.now() / 1000);

  async function setting(claims: Partial<Parameters<typeof signWebhookToken>[2]> = {}) {
    const { whsk, jwk } = await pair();
    const { key } = await webhookKey(whsk);
    const content = { issuer, audience: url, id: "config_1_1", timestamp, taskId: "t1", body, ...claims };
    const token = await signWebhookToken(key, jwk.kid, content);
    const received = receive({ accept, fetch: keySets([jwk]).fetch });
    return { ...received, sent: { key: undefined, headers: { authorization: `Bearer ${token}` } } };
  }

  test("a JWT of the server for this receiver, task and body is accepted; its jti is the id", async () => {
    const { send, sent, deliveries } = await setting();
    expect((await send(event, sent)).status).toBe(204);
    expect(deliveries).toEqual([{ id: "config_1_1", taskId: "t1", trust: accept, sequence: 1 }]);
    // The receiver does not handle a replayed delivery again, whichever id its headers name.
    const again = { ...sent, headers: { ...sent.headers, "webhook-id": "config_2_2" } };
    expect((await send(event, again)).status).toBe(204);
    expect(deliveries).toHaveLength(1);
  });

  test.each([
    ["issuer", { issuer: "https://other.example.com" }],
    ["audience", { audience: "https://app.example.com/other" }],
    ["time", { timestamp: timestamp - 3600 }],
    ["task", { taskId: "t2" }],
    ["body", { body: "{}" }],
  ])("a JWT with another %s is rejected with 401", async (_name, claims) => {
    const { send, sent, events } = await setting(claims);
    expect((await send(event, sent)).status).toBe(401);
    expect(events).toEqual([]);
  });

  test.each([
    ["none", undefined],
    ["a token that is not a JWT", "Bearer abc"],
    ["another scheme", "Basic abc"],
    [
      "alg none",
      `Bearer ${btoa('{"alg":"none"}')}.${btoa(JSON.stringify({ iss: issuer, aud: url, taskId: "t1" })).replaceAll("=", "")}.`,
    ],
  ])("Authorization with %s is rejected with 401", async (_name, authorization) => {
    const { send } = await setting();
    const headers = authorization === undefined ? {} : { authorization };
    expect((await send(event, { key: undefined, headers })).status).toBe(401);
  });
});

describe("token only, as other SDKs send it", () => {
  const accept = { tokenOnly: true } as const;

  test.each(["x-a2a-notification-token", "a2a-notification-token"])("the token in %s is accepted", async (name) => {
    const { send, deliveries } = receive({ accept, token: "s3cret" });
    expect((await send(event, { key: undefined, headers: { [name]: "s3cret" } })).status).toBe(204);
    expect(deliveries).toEqual([{ taskId: "t1", trust: accept }]);
  });

  test.each([[{}], [{ "x-a2a-notification-token": "s3cre" }], [{ "x-a2a-notification-token": "x".repeat(10_000) }]])(
    "a missing or wrong token is rejected with 401: %o",
    async (headers) => {
      const { send, events } = receive({ accept, token: "s3cret" });
      expect((await send(event, { key: undefined, headers })).status).toBe(401);
      expect(events).toEqual([]);
    },
  );

  test("Authorization is accepted if the config asks for it, with the token or without it", async () => {
    const authentication = { scheme: "Bearer", credentials: "abc" };
    const { receiver, send } = receive({ accept: { ...accept, authentication }, token: "s3cret" });
    expect(receiver.config({ taskId: "t1" })).toEqual({ taskId: "t1", url, token: "s3cret", authentication });
    const statusOf = async (headers: Record<string, string>) => (await send(event, { key: undefined, headers })).status;
    expect(await statusOf({ authorization: "bearer abc" })).toBe(204);
    expect(await statusOf({ authorization: "Bearer abc", "x-a2a-notification-token": "s3cret" })).toBe(204);
    expect(await statusOf({ authorization: "Bearer abc", "x-a2a-notification-token": "other" })).toBe(401);
    expect(await statusOf({ authorization: "Bearer abd" })).toBe(401);
    expect(await statusOf({ "x-a2a-notification-token": "s3cret" })).toBe(401);
  });
});

describe("a token beside a signature", () => {
  test("a delivery needs both", async () => {
    const { receiver, send } = receive({ token: "s3cret" });
    expect(receiver.config()).toEqual({
      url,
      token: "s3cret",
      authentication: { scheme: "StandardWebhooks", credentials: secret },
    });
    const token = { "x-a2a-notification-token": "s3cret" };
    expect((await send(event, { headers: token })).status).toBe(204);
    expect((await send(event)).status).toBe(401);
    expect((await send(event, { headers: { "x-a2a-notification-token": "other" } })).status).toBe(401);
    expect((await send(event, { key: undefined, headers: token })).status).toBe(401);
  });
});

test("no answer and no log line contains a secret, a token or a signature", async () => {
  const { logger, text } = textLogger();
  const { send } = receive({ token: "s3cret-token", logger });
  const headers = { "x-a2a-notification-token": "guessed-token", authorization: "Bearer guessed-bearer" };
  const answer = await reasonOf(await send(event, { headers, path: `${url}?key=in-the-query` }));
  for (const hidden of ["s3cret-token", "guessed", secret.slice(6), "v1,", "in-the-query"]) {
    expect(answer + text()).not.toContain(hidden);
  }
  expect(text()).toContain("Webhook rejected");
});

describe("options that cannot work are rejected at once", () => {
  const wrong: readonly (readonly [string, Partial<WebhookReceiverOptions>])[] = [
    ["url", { url: "/hooks" }],
    ["accept", { accept: [] }],
    ["accept[0]", { accept: {} as WebhookTrust }],
    ["accept[0].secret", { accept: { secret: "s3cret" } }],
    ["accept[0].secret", { accept: { secret: "whsec_AAAA" } }],
    ["accept[0].publicKey", { accept: { publicKey: "whpk_AAAA" } }],
    ["accept[0].publicKey", { accept: { publicKey: secret } }],
    ["accept[0].keySet", { accept: { keySet: "jwks.json" } }],
    ["accept[1].jwt.issuer", { accept: [{ secret }, { jwt: { keySet: keySetUrl, issuer: "" } }] }],
    ["token", { accept: { tokenOnly: true } }],
    ["token", { token: "two words" }],
  ];
  test.each(wrong)("%s: %o", (field, options) => {
    expect(() => webhookReceiver({ url, accept: { secret }, onEvent() {}, ...options })).toThrow(
      expect.objectContaining({ code: "InvalidParams", fields: [expect.objectContaining({ field })] }),
    );
  });
});
