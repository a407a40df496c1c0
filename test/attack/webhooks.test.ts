import { createHash, generateKeyPairSync, randomBytes, type KeyObject } from "node:crypto";
import { mkdtempSync } from "node:fs";
import { rm } from "node:fs/promises";
import { createServer, request, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { signWebhook, webhookKey, webhookMemory, webhookReceiver, type WebhookMemory } from "@parley/a2a/webhooks";
import { nodeListener } from "@parley/node";
import { sqliteWebhookMemory } from "@parley/sql/sqlite";
import fc from "fast-check";
import { SignJWT } from "jose";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { keepSecret } from "../secrets.ts";

/*
 * A receiver that trusts several senders, one of which is hostile: it knows or guesses the ids of another sender's deliveries, and delivers
 * under these ids before, during and after those deliveries. It also sends signatures in spellings that decode to the same bytes.
 */

const folder = mkdtempSync(join(tmpdir(), "parley-webhook-attack-"));
afterAll(() => rm(folder, { recursive: true, force: true }));

async function listening(listener: RequestListener): Promise<{ readonly server: Server; readonly url: string }> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { server, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

async function stop(server: Server): Promise<void> {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
}

/** Creates an Ed25519 key pair in the formats of Standard Webhooks, JWTs and key sets. */
function pair(kid: string) {
  const { privateKey, publicKey } = generateKeyPairSync("ed25519");
  const seed = privateKey.export({ format: "der", type: "pkcs8" }).subarray(-32);
  const whsk = `whsk_${seed.toString("base64")}`;
  keepSecret(whsk);
  const open = publicKey.export({ format: "der", type: "spki" }).subarray(-32);
  return {
    privateKey,
    whsk,
    whpk: `whpk_${open.toString("base64")}`,
    jwk: { ...publicKey.export({ format: "jwk" }), kid, use: "sig", alg: "EdDSA" },
  };
}

const names = ["firstSecret", "secondSecret", "publicKey", "keySet", "jwt", "authorization", "subscription"] as const;
type SenderName = (typeof names)[number];

const secrets = [`whsec_${randomBytes(24).toString("base64")}`, `whsec_${randomBytes(24).toString("base64")}`] as const;
for (const one of secrets) keepSecret(one);
const bearerToken = "webhook-token-0123456789-0123456789";
const [single, listed, issued] = [pair("single"), pair("listed"), pair("issued")];
let keySets: { readonly server: Server; readonly url: string };

beforeAll(async () => {
  const sets: Readonly<Record<string, object>> = {
    "/listed": { keys: [listed.jwk] },
    "/issued": { keys: [issued.jwk] },
  };
  keySets = await listening((incoming, response) => response.end(JSON.stringify(sets[incoming.url ?? ""])));
});
afterAll(() => stop(keySets.server));

interface Delivery {
  readonly id: string;
  readonly taskId: string;
  readonly text: string;
}

/** The headers that a sender sets. */
type Headers = Readonly<Record<string, string>>;

interface Receiving {
  readonly handled: string[];
  send(sender: SenderName, delivery: Delivery, change?: (headers: Headers) => Headers): Promise<number>;
}

const now = (): number => Math.floor(Date.now() / 1000);

async function jwtFor(url: string, { id, taskId }: Delivery, body: string, key: KeyObject): Promise<string> {
  const hash = createHash("sha256").update(body).digest("hex");
  return new SignJWT({ taskId, request_body_sha256: hash })
    .setProtectedHeader({ alg: "EdDSA", kid: "issued" })
    .setIssuer("https://issued.example.com")
    .setAudience(url)
    .setIssuedAt(now())
    .setExpirationTime(now() + 300)
    .setJti(id)
    .sign(key);
}

/** Starts a receiver that trusts all senders, on a real port. */
async function receiving(memory: WebhookMemory): Promise<Receiving> {
  const handled: string[] = [];
  let handle: RequestListener = () => undefined;
  const { server, url } = await listening((incoming, response) => handle(incoming, response));
  const note = (event: object): void =>
    void handled.push(JSON.stringify(event).replace(/^.*"text":"([^"]*)".*$/, "$1"));
  const receiver = webhookReceiver({
    url,
    accept: [
      { secret: secrets[0] },
      { secret: secrets[1] },
      { publicKey: single.whpk },
      { keySet: `${keySets.url}/listed` },
      { jwt: { keySet: `${keySets.url}/issued`, issuer: "https://issued.example.com", audience: url } },
      { tokenOnly: true, authentication: { scheme: "Bearer", credentials: bearerToken } },
    ],
    memory,
    onEvent: note,
  });
  handle = nodeListener(receiver.handle);
  const subscription = receiver.subscribe(note).config().token ?? "";
  onTestFinished(async () => {
    await receiver.close();
    await stop(server);
    await memory.close?.();
  });
  const headersOf = async (sender: SenderName, delivery: Delivery, body: string): Promise<Headers> => {
    const { id } = delivery;
    const timestamp = now();
    const signed = async (key: string): Promise<Headers> => ({
      "webhook-id": id,
      "webhook-timestamp": String(timestamp),
      "webhook-signature": await signWebhook([await webhookKey(key)], { id, timestamp, body }),
    });
    switch (sender) {
      case "firstSecret":
        return signed(secrets[0]);
      case "secondSecret":
        return signed(secrets[1]);
      case "publicKey":
        return signed(single.whsk);
      case "keySet":
        return signed(listed.whsk);
      case "jwt":
        return { authorization: `Bearer ${await jwtFor(url, delivery, body, issued.privateKey)}` };
      case "authorization":
        return { "webhook-id": id, authorization: `Bearer ${bearerToken}` };
      case "subscription":
        return { "webhook-id": id, "x-a2a-notification-token": subscription };
    }
  };
  return {
    handled,
    async send(sender, delivery, change = (headers) => headers) {
      const { taskId, text } = delivery;
      const message = { messageId: "m", role: "ROLE_AGENT", parts: [{ text }] };
      const status = { state: "TASK_STATE_WORKING", message };
      const body = JSON.stringify({ statusUpdate: { taskId, contextId: "c", status } });
      const headers = change({ "content-type": "application/a2a+json", ...(await headersOf(sender, delivery, body)) });
      return new Promise((resolve, reject) => {
        const sending = request(url, { method: "POST", headers }, (response) => {
          response.resume().on("end", () => resolve(response.statusCode ?? 0));
        });
        sending.on("error", reject);
        sending.end(body);
      });
    },
  };
}

const kinds = [
  ["in memory", () => Promise.resolve(webhookMemory())],
  ["in SQLite", (file: string) => sqliteWebhookMemory({ path: join(folder, `${file}.db`) })],
] as const;

let files = 0;

describe.each(kinds)("a receiver of several trusted senders, with its memory %s", (_name, open) => {
  it("handles each delivery of each sender once, whichever ids the others use", async () => {
    const deliveries = fc.array(
      fc.record({
        sender: fc.constantFrom(...names),
        // Parley's delivery ids contain a config and a number. Several senders also use the same task ids.
        id: fc.constantFrom("a", "b", "config_1_1", "config_2_2", "config_9_9"),
        taskId: fc.constantFrom("t1", "t2"),
      }),
      { minLength: 5, maxLength: 30 },
    );
    const holds = fc.asyncProperty(deliveries, async (sent) => {
      const to = await receiving(await open(`${(files += 1)}`));
      const textOf = ({ sender, id }: { readonly sender: string; readonly id: string }): string => `${sender} ${id}`;
      const statuses = await Promise.all(sent.map((one) => to.send(one.sender, { ...one, text: textOf(one) })));
      expect(statuses).toEqual(sent.map(() => 204));
      expect(to.handled.toSorted()).toEqual([...new Set(sent.map(textOf))].toSorted());
    });
    await fc.assert(holds, { numRuns: 15 });
  });

  it("does not lose a sender's delivery to another sender that used its id first", async () => {
    const to = await receiving(await open(`${(files += 1)}`));
    for (const hostile of names) {
      for (const victim of names.filter((name) => name !== hostile)) {
        const id = `${hostile}-${victim}`;
        expect(await to.send(hostile, { id, taskId: "t", text: `${hostile} first` })).toBe(204);
        expect(await to.send(victim, { id, taskId: "t", text: `${id} arrived` })).toBe(204);
        expect(to.handled.at(-1)).toBe(`${id} arrived`);
        const before = to.handled.length;
        expect(await to.send(victim, { id, taskId: "t", text: "again" })).toBe(204);
        expect(to.handled.length).toBe(before);
      }
    }
  });
});

describe("a signature in another spelling of the same bytes", () => {
  const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

  it.each([
    ["firstSecret", "webhook-signature", "+/"],
    ["publicKey", "webhook-signature", "+/"],
    ["keySet", "webhook-signature", "+/"],
    ["jwt", "authorization", "-_"],
  ] as const)("of %s is rejected", async (sender, header, others) => {
    const to = await receiving(webhookMemory());
    const delivery = { id: "one", taskId: "t", text: "hello" };
    const spelled = (change: (value: string) => string) =>
      to.send(sender, delivery, (headers) => ({ ...headers, [header]: change(headers[header] ?? "") }));
    const ends = Array.from(alphabet + others).map((last) => (value: string) => value.replace(/.(=*)$/, `${last}$1`));
    const tails = ["=", "==", "A", "."].map((tail) => (value: string) => value + tail);
    let accepted = 0;
    for (const change of [...ends, ...tails, (value: string) => value.replace(/=+$/, "")]) {
      let same = false;
      const status = await spelled((value) => {
        const changed = change(value);
        same = changed === value;
        return changed;
      });
      // Each request gets a new JWT, so the last character that the test writes may be the correct one.
      expect([401, 503, ...(same ? [204] : [])]).toContain(status);
      accepted += status === 204 ? 1 : 0;
    }
    expect(await spelled((value) => value)).toBe(204);
    expect(accepted).toBeLessThanOrEqual(2);
  });
});
