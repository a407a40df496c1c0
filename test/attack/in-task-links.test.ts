import { request } from "node:http";
import { text as bodyOf } from "node:stream/consumers";
import { defineAgent, memoryStore, serve, silentLogger, type Server } from "@parley/node";
import { connect, readAuthorization, type Client } from "@parley/a2a";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

/*
 * Links of in-task authorizations: a page of another origin has the link, and sends the answer from the browser of a person who has
 * not read the request (A2A 1.0 §7.6.3; Fetch Metadata; RFC 6454 §7). Browsers send anything that fetch(), forms and beacons can send. The
 * pages of `shop.example` may even read responses, because the server allows them to call agents (CORS).
 */

const shop = "https://shop.example";
let server: Server;
let client: Client;
let link: URL;
let taskId: string;

beforeAll(async () => {
  const agent = defineAgent({
    name: "Shop",
    description: "Asks before it pays",
    version: "1.0.0",
    skills: [],
    async *onMessage(turn) {
      yield* turn.authorize({ form: "approval", reason: "Pay 20 EUR?", lifetime: 3_600_000 });
      yield turn.artifact({ parts: [{ text: "paid" }] });
    },
  });
  server = await serve(agent, {
    port: 0,
    signals: false,
    store: memoryStore(),
    logger: silentLogger,
    cors: { origins: [shop] },
    allowedHosts: ["*"],
    authorization: { keys: [Buffer.alloc(32, 7).toString("base64")] },
  });
  client = await connect(server.url);
  const { task } = await client.sendMessage("Buy bread");
  taskId = task?.id ?? "";
  link = new URL(readAuthorization(task?.status.message)?.url ?? "");
});
afterAll(() => server.close({ grace: 0 }));

interface Answer {
  readonly status: number;
  readonly body: string;
}

/** Posts over a socket, with any headers. */
function post(headers: Readonly<Record<string, string>>, body: string, url: URL = link): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const sending = request(url, { method: "POST", headers }, (response) => {
      void bodyOf(response).then((text) => resolve({ status: response.statusCode ?? 0, body: text }), reject);
    });
    sending.on("error", reject);
    sending.end(body);
  });
}

const state = async (): Promise<string> => (await client.getTask(taskId)).status.state;

/** The bodies that a page can send, both with and without a preflight. */
const bodies: readonly (readonly [type: string | undefined, body: (token: string) => string])[] = [
  [
    "application/x-www-form-urlencoded",
    (token) => new URLSearchParams({ request: token, decision: "approve" }).toString(),
  ],
  ["text/plain", (token) => new URLSearchParams({ request: token, decision: "approve" }).toString()],
  [undefined, (token) => new URLSearchParams({ request: token, decision: "deny" }).toString()],
  ["text/plain", () => '{"credential":true}'],
  ["application/json", () => '{"credential":true}'],
  ["application/json;charset=utf-8", () => '{"denied":true}'],
  ["APPLICATION/JSON", () => '{"credential":true}'],
  ["application/json", () => "not even JSON"],
];

const foreignSite = fc.constantFrom("cross-site", "same-site", "", "Same-Origin", "same-origin, cross-site");
const ownSite = fc.constantFrom(undefined, "same-origin", "none");
const foreignOrigin = fc.constantFrom(
  shop,
  "https://evil.example",
  "null",
  "",
  "file://",
  "http://127.0.0.1",
  "localhost",
);

describe("an in-task link that a page of another origin answers", () => {
  it("is rejected for every type of body, with or without a preflight, by either header", async () => {
    const hostile = fc.oneof(
      fc.record({ site: foreignSite, origin: fc.option(foreignOrigin, { nil: undefined }) }),
      fc.record({ site: ownSite, origin: foreignOrigin }),
      fc.record({ site: foreignSite, origin: fc.constant("own" as const) }),
    );
    const holds = fc.asyncProperty(hostile, fc.constantFrom(...bodies), async ({ site, origin }, [type, body]) => {
      const headers = {
        ...(type !== undefined && { "content-type": type }),
        ...(site !== undefined && { "sec-fetch-site": site }),
        ...(origin !== undefined && { origin: origin === "own" ? link.origin : origin }),
      };
      const answer = await post(headers, body(link.searchParams.get("request") ?? ""));
      expect({ headers, status: answer.status }).toEqual({ headers, status: 410 });
      expect(await state()).toBe("TASK_STATE_AUTH_REQUIRED");
    });
    await fc.assert(holds, { numRuns: 150 });
  });

  it("answers like an invalid link, so the page learns nothing", async () => {
    const unknown = new URL(link);
    unknown.searchParams.set("request", "AAAAAAAA.AAAAAAAAAAAAAAAA.AAAA");
    const json = { "content-type": "application/json", "sec-fetch-site": "cross-site", origin: shop };
    expect(await post(json, '{"credential":true}')).toEqual(await post(json, '{"credential":true}', unknown));
  });

  it("has one spelling: it is rejected with any character changed, added or removed", async () => {
    const token = link.searchParams.get("request") ?? "";
    const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    // The last character of each part has bits that do not belong to any byte. The test tries all spellings of these bits.
    const ends = Array.from(token).flatMap((_, at) => ((token[at + 1] ?? ".") === "." ? [at] : []));
    const spellings = [
      ...ends.flatMap((at) => Array.from(alphabet).map((put) => token.slice(0, at) + put + token.slice(at + 1))),
      ...Array.from(token).map((was, at) => token.slice(0, at) + (was === "A" ? "B" : "A") + token.slice(at + 1)),
      ...["=", "==", ".", ".AAAA", "A", " ", "\n"].map((tail) => token + tail),
      ...ends.map((at) => `${token.slice(0, at + 1)}==${token.slice(at + 1)}`),
      token.replaceAll("-", "+"),
      token.replaceAll("_", "/"),
    ].filter((spelling) => spelling !== token);
    for (const spelling of new Set(spellings)) {
      const url = new URL(link);
      url.searchParams.set("request", spelling);
      const { status } = await post({ "content-type": "application/json" }, '{"credential":true}', url);
      expect([spelling, status]).toEqual([spelling, 410]);
    }
    expect(await state()).toBe("TASK_STATE_AUTH_REQUIRED");
  });

  it("is still answered by its own page and by programs", async () => {
    const own = { "content-type": "application/json", "sec-fetch-site": "same-origin", origin: link.origin };
    expect(await post(own, '{"credential":"wrong"}')).toMatchObject({ status: 400 });
    expect(await post({ "content-type": "application/json" }, '{"credential":true}')).toMatchObject({ status: 200 });
    await expect.poll(state).toBe("TASK_STATE_COMPLETED");
  });
});
