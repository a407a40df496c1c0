import { randomBytes } from "node:crypto";
import { describe, expect, test, vi } from "vitest";
import type { AuthorizationRequest } from "@parley/a2a/internal/client/index";
import { memoryStore } from "../../src/store/index.ts";
import { text } from "@parley/a2a/internal/model/index";
import type { HandlerOptions } from "../../src/handler.ts";
import type { AuditRecord } from "@parley/a2a/internal/protocol/index";
import { agentOf, asked, posted, rest, serving, type Served } from "./support.ts";

/* Hostile requests to the callback (A2A 1.0 §7.6.3) all get the same response, and do not change a task. */

const agent = agentOf(async function* (turn) {
  yield* turn.authorize({ form: "approval", reason: "Pay 20 EUR?" });
  yield turn.artifact({ parts: [text("paid")] });
});

async function waiting(options: Partial<HandlerOptions> = {}, user = "ada") {
  const served = serving(agent, options);
  const client = await served.client(user);
  const events = client.sendStreamingMessage("Buy bread")[Symbol.asyncIterator]();
  return { served, client, events, ...(await asked(events)) };
}

const tokenOf = ({ url = "" }: AuthorizationRequest): string => new URL(url).searchParams.get("request") ?? "";
const withToken = (request: AuthorizationRequest, token: string): AuthorizationRequest => {
  const url = new URL(request.url ?? "");
  url.searchParams.set("request", token);
  return { ...request, url: url.href };
};
const approve = { decision: "approve" };

/** Returns the status and body of a response. */
async function answerOf(
  served: Served,
  request: AuthorizationRequest,
  form: Record<string, string> = approve,
  init?: RequestInit,
) {
  const response = await posted(served, request, form, init);
  return `${response.status} ${await response.text()}`;
}

describe("the callback", () => {
  test("takes one of two concurrent answers, and none again", async () => {
    const { served, request, events } = await waiting();
    const answers = await Promise.all(
      Array.from({ length: 10 }, async () => (await posted(served, request, approve)).status),
    );
    expect(answers.filter((status) => status === 200)).toHaveLength(1);
    expect(answers.filter((status) => status === 410)).toHaveLength(9);
    expect(await rest(events)).toEqual(["WORKING", "paid", "COMPLETED"]);
    expect((await posted(served, request, approve)).status).toBe(410);
  });

  test("rejects forged links without reading the store, and answers them like used ones", async () => {
    const store = memoryStore();
    const { served, request, client, taskId } = await waiting({ store, pollInterval: 3_600_000 });
    const features = vi.spyOn(store, "features");
    const token = tokenOf(request);
    const other = await waiting({ authorization: { keys: [randomBytes(32).toString("base64")] } });
    const gone = await answerOf(served, withToken(request, "a.b.c"));
    expect(gone).toContain("410");
    const forged = [
      "",
      "..",
      token.slice(0, -2),
      `${token}A`,
      token.toUpperCase(),
      token.replaceAll(".", ""),
      tokenOf(other.request),
      "x".repeat(10_000),
      "\0",
      "../../etc",
      ...Array.from({ length: 20 }, (_, at) => {
        const place = Math.floor(((at + 0.5) * token.length) / 20);
        const character = token[place] === "A" ? "B" : "A";
        return token.slice(0, place) + character + token.slice(place + 1);
      }),
    ].filter((each) => each !== token);
    features.mockClear();
    for (const each of forged) expect(await answerOf(served, withToken(request, each))).toBe(gone);
    expect(features).not.toHaveBeenCalled();
    expect((await client.getTask(taskId)).status.state).toBe("TASK_STATE_AUTH_REQUIRED");
    await posted(served, request, approve);
    expect(await answerOf(served, request)).toBe(gone);
  });

  test("does not accept a link whose task someone else has recreated under the same key", async () => {
    const { request } = await waiting();
    const fresh = serving(agent, { store: memoryStore() });
    expect((await posted(fresh, request, approve)).status).toBe(410);
  });

  test("changes nothing when the link is opened, as link scanners do", async () => {
    const { served, request, client, taskId } = await waiting();
    for (const method of ["GET", "HEAD", "GET"]) {
      expect((await served.fetch(request.url ?? "", { method })).status).toBe(200);
    }
    for (const query of ["decision=approve", "credential=true", "denied=true"]) {
      await served.fetch(`${request.url ?? ""}&${query}`);
    }
    expect((await served.fetch(request.url ?? "", { method: "PUT", body: "{}" })).status).toBe(405);
    expect((await client.getTask(taskId)).status.state).toBe("TASK_STATE_AUTH_REQUIRED");
  });

  test("rejects the credentials of another principal, and wrong credentials", async () => {
    const { served, request, events } = await waiting();
    const gone = await answerOf(served, withToken(request, "a.b.c"));
    for (const token of ["bob", "nobody"]) {
      const headers = { authorization: `Bearer ${token}` };
      expect(await answerOf(served, request, approve, { headers })).toBe(gone);
      expect((await served.fetch(request.url ?? "", { headers })).status).toBe(410);
    }
    expect((await posted(served, request, approve, { headers: { authorization: "Bearer ada" } })).status).toBe(200);
    expect((await rest(events)).at(-1)).toBe("COMPLETED");
  });

  test("asks the host who opened the link, if the host knows", async () => {
    const identify: NonNullable<HandlerOptions["authorization"]>["identify"] = (request) => {
      const user = /session=(\w+)/.exec(request.header("cookie") ?? "")?.[1];
      if (user === "broken") throw new Error("The session store is down");
      return user === undefined ? undefined : { subject: user };
    };
    const { served, request } = await waiting({
      authorization: { keys: [Buffer.alloc(32).toString("base64")], identify },
    });
    for (const cookie of ["", "session=bob", "session=broken"]) {
      expect((await posted(served, request, approve, { headers: { cookie } })).status).toBe(410);
    }
    expect((await posted(served, request, approve, { headers: { cookie: "session=ada" } })).status).toBe(200);
  });

  test("accepts no answer of another form, and none that is too large", async () => {
    const { served, request, client, taskId } = await waiting();
    for (const form of [{}, { decision: "give", secret: "x" }, { decision: "continue" }, { decision: "approved" }]) {
      expect((await posted(served, request, form as Record<string, string>)).status).toBe(400);
    }
    const json = (body: string) =>
      served.fetch(request.url ?? "", { method: "POST", headers: { "content-type": "application/json" }, body });
    for (const body of [
      "",
      "null",
      "[]",
      "{}",
      `{"credential":1}`,
      `{"credential":"true"}`,
      `{"denied":1}`,
      "{".repeat(9000),
    ]) {
      expect((await json(body)).status).toBe(400);
    }
    expect((await json(JSON.stringify({ credential: "x".repeat(70_000) }))).status).toBe(413);
    expect((await client.getTask(taskId)).status.state).toBe("TASK_STATE_AUTH_REQUIRED");
    expect((await json(`{"credential":true}`)).status).toBe(200);
  });

  test("rejects a form from a page of another origin, which the user has not read (Fetch Metadata, RFC 6454 §7)", async () => {
    const { served, request, client, taskId } = await waiting();
    const { origin } = new URL(request.url ?? "");
    for (const decision of ["approve", "deny", "continue"]) {
      for (const headers of [
        { "sec-fetch-site": "cross-site", origin },
        { "sec-fetch-site": "same-site" },
        { origin: "https://evil.example" },
        { origin: "null" },
      ] as Record<string, string>[]) {
        const answer = await posted(served, request, { decision }, { headers });
        expect([answer.status, answer.headers.get("set-cookie")]).toEqual([410, null]);
      }
    }
    expect((await client.getTask(taskId)).status.state).toBe("TASK_STATE_AUTH_REQUIRED");
    const own = { "sec-fetch-site": "same-origin", origin };
    expect((await posted(served, request, approve, { headers: own })).status).toBe(200);
  });

  test("accepts no redirect for a request that has none", async () => {
    const { served, request } = await waiting();
    const url = new URL(request.url ?? "");
    const state = url.searchParams.get("request") ?? "";
    for (const query of [
      `state=${state}&code=1`,
      `state=${state}&error=access_denied`,
      "state=&code=1",
      "state=a.b.c",
    ]) {
      expect((await served.fetch(`${url.origin}${url.pathname}?${query}`)).status).toBe(410);
    }
  });

  test("reveals nothing of owners and tasks in a link", async () => {
    const { request, taskId } = await waiting();
    const bytes = tokenOf(request)
      .split(".")
      .map((part) => Buffer.from(part, "base64url").toString("latin1"));
    expect([tokenOf(request), ...bytes].join(" ")).not.toMatch(new RegExp(`ada|${taskId}`));
  });
});

describe("the audit", () => {
  test("records each answer and each rejection, without a secret", async () => {
    const records: AuditRecord[] = [];
    const { served, request, events, taskId } = await waiting({ audit: (record) => records.push(record) });
    await posted(served, request, approve, { headers: { authorization: "Bearer bob" } });
    await posted(served, request, approve);
    await rest(events);
    await posted(served, request, approve);
    const seen = records.filter(({ event }) => event === "credential");
    expect(seen.map(({ action, outcome }) => `${action ?? ""} ${outcome}`)).toEqual([
      "authorize.callback refused",
      "authorize.callback success",
      "authorize.received success",
      "authorize.callback refused",
    ]);
    for (const record of seen) expect(record).toMatchObject({ agent: "/", taskId });
    expect(seen[2]).toMatchObject({ subject: "ada" });
    expect(JSON.stringify(records)).not.toContain(tokenOf(request));
  });
});

test("the callback shares the memory for bodies that are being received, because anybody may send one", async () => {
  const kib = 1024;
  const served = serving(agent, { limits: { bodyBytes: 64 * kib, unfinishedBytes: 512 * kib } });
  const open = new Set<() => void>();
  const statuses = Array.from({ length: 100 }, async () => {
    let end = (): void => {};
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        controller.enqueue(new Uint8Array(16 * kib).fill(0x61));
        open.add((end = () => controller.close()));
      },
      cancel: () => void open.delete(end),
    });
    const init = { method: "POST", body, duplex: "half" as const };
    return (await served.fetch("https://agents.example.com/.well-known/parley/authorization", init)).status;
  });
  // A quarter of the memory is for small bodies. While these bodies are incomplete, the server rejects further ones.
  expect(await Promise.race(statuses)).toBe(503);
  for (const end of open) end();
  const refused = (await Promise.all(statuses)).filter((status) => status === 503).length;
  expect(refused).toBeGreaterThanOrEqual(100 - (512 * kib) / 4 / (16 * kib));
  expect(await Promise.all(statuses)).toContain(410);
});
