import { connect, defineAgent, memoryStore, serve, silentLogger, type Client } from "@parley/node";
import {
  oid4vp,
  oid4vpUri,
  presentWith,
  readOid4vpRequest,
  walletUrl,
  type PresentationRequest,
} from "@parley/extensions/oid4vp";
import { data, type StreamResponse } from "@parley/a2a/model";
import { describe, expect, it, onTestFinished, vi } from "vitest";

/*
 * Attacks on presentations (OID4VP extension v1; "An agent that asks" and "Links" of its page): answers from someone other than the verifier,
 * answers to another request, and requests that send a wallet to another address.
 */

interface Asking {
  readonly url: string;
  readonly client: Client;
  /** Starts a task. Resolves to the task's id, and to the callback of its verifier. */
  begin(): Promise<{ readonly taskId: string; readonly callback: URL }>;
  state(taskId: string): Promise<string>;
  outcome(taskId: string): Promise<unknown>;
}

async function asking(lifetime = 3_600_000): Promise<Asking> {
  const callbacks: string[] = [];
  const agent = defineAgent({
    name: "University",
    description: "Enrols students",
    version: "1.0.0",
    skills: [],
    extensions: [oid4vp],
    async *onMessage(turn) {
      const presentations = turn.ext(oid4vp);
      if (presentations === undefined) return yield turn.reply("no");
      const outcome = yield* presentations.authorize({
        reason: "Your diploma, please",
        lifetime,
        request: (callback) => {
          callbacks.push(callback);
          return { client_id: "verifier", request_uri: `https://verifier.example/${callbacks.length}` };
        },
      });
      yield turn.artifact({ parts: [data({ outcome })] });
    },
  });
  const server = await serve(agent, {
    port: 0,
    signals: false,
    store: memoryStore(),
    logger: silentLogger,
    authorization: { keys: [Buffer.alloc(32, 9).toString("base64")] },
  });
  onTestFinished(() => server.close({ grace: 0 }));
  const client = await connect(server.url, { extensions: [oid4vp.uri] });
  return {
    url: server.url,
    client,
    async begin() {
      const { task } = await client.sendMessage("Enrol me");
      const callback = callbacks.at(-1);
      if (task === undefined || callback === undefined) throw new Error("It asks nothing");
      expect(task.status.state).toBe("TASK_STATE_AUTH_REQUIRED");
      // The public content of the task does not reveal the callback.
      const token = new URL(callback).searchParams.get("request") ?? "";
      expect(JSON.stringify(task)).not.toContain(token.slice(0, 24));
      return { taskId: task.id, callback: new URL(callback) };
    },
    state: async (id) => (await client.getTask(id)).status.state,
    outcome: async (id) => (await client.getTask(id)).artifacts?.[0]?.parts[0]?.data,
  };
}

async function post(url: URL, body: string | Buffer, type = "application/json"): Promise<number> {
  const response = await fetch(url, { method: "POST", headers: { "content-type": type }, body });
  await response.text();
  return response.status;
}

const yes = (who: string) => JSON.stringify({ credential: { who } });

describe("a callback accepts", () => {
  it("only the answer to its own request, once: nothing of another task, and nothing later", async () => {
    const agent = await asking();
    const [mine, yours] = [await agent.begin(), await agent.begin()];
    // Parts of two links cannot be combined to a third link.
    const [a = "", b = ""] = [mine, yours].map(({ callback }) => callback.searchParams.get("request") ?? "");
    const [first, second] = [a.split("."), b.split(".")];
    for (let at = 0; at < first.length; at += 1) {
      const mixed = new URL(mine.callback);
      mixed.searchParams.set("request", first.map((part, i) => (i === at ? second[i] : part)).join("."));
      if (mixed.search === mine.callback.search || mixed.search === yours.callback.search) continue;
      expect(await post(mixed, yes("mallory"))).toBe(410);
    }
    expect(await post(mine.callback, yes("mine"))).toBe(200);
    await vi.waitFor(async () => expect(await agent.state(mine.taskId)).toBe("TASK_STATE_COMPLETED"));
    expect(await agent.outcome(mine.taskId)).toEqual({ outcome: { who: "mine" } });
    expect(await agent.state(yours.taskId)).toBe("TASK_STATE_AUTH_REQUIRED");
    for (const body of [yes("again"), '{"denied":true}']) expect(await post(mine.callback, body)).toBe(410);
    expect(await agent.outcome(mine.taskId)).toEqual({ outcome: { who: "mine" } });
    await agent.client.cancelTask(yours.taskId);
    expect(await post(yours.callback, yes("late"))).toBe(410);
  });

  it("one of twenty different concurrent answers", async () => {
    const agent = await asking();
    const { taskId, callback } = await agent.begin();
    const answers = Array.from({ length: 20 }, (_, at) =>
      post(callback, at % 5 === 0 ? '{"denied":true}' : yes(`${at}`)),
    );
    const statuses = await Promise.all(answers);
    expect(statuses.filter((status) => status === 200)).toHaveLength(1);
    await vi.waitFor(async () => expect(await agent.state(taskId)).toMatch(/COMPLETED|FAILED/));
    const at = statuses.indexOf(200);
    expect(await agent.outcome(taskId)).toEqual(at % 5 === 0 ? undefined : { outcome: { who: `${at}` } });
  });

  it("only an answer, and none in a message, from the caller or anybody", async () => {
    const agent = await asking();
    const { taskId, callback } = await agent.begin();
    const wrong: readonly (readonly [string | Buffer, string])[] = [
      ["", "application/json"],
      ["null", "application/json"],
      ["[]", "application/json"],
      ['{"credential":', "application/json"],
      ["{}", "application/json"],
      ['{"__proto__":{"credential":true}}', "application/json"],
      ['{"constructor":{"credential":true}}', "application/json"],
      ['{"denied":"true"}', "application/json"],
      ['{"vp_token":"eyJ.e30.","state":"x"}', "application/json"],
      ["vp_token=eyJ.e30.&state=x", "application/x-www-form-urlencoded"],
      [`request=${callback.searchParams.get("request")}&decision=approve`, "application/x-www-form-urlencoded"],
      [`request=${callback.searchParams.get("request")}&decision=give&secret=x`, "application/x-www-form-urlencoded"],
      [yes("x"), "text/plain"],
      [JSON.stringify({ credential: "x".repeat(17_000) }), "application/json"],
      [JSON.stringify({ credential: "x".repeat(10 << 20) }), "application/json"],
      ["[".repeat(100_000), "application/json"],
    ];
    for (const [body, type] of wrong) {
      expect(await post(callback, body, type), body.toString().slice(0, 60)).toBeGreaterThanOrEqual(400);
    }
    expect((await fetch(`${callback.href}&state=x&code=y`)).status).toBe(410);
    for (const id of ["oid4vp-1", "1", "request 0 1"]) {
      const answer = {
        data: { "urn:parley:extension:in-task-authorization:v1": { id, credential: { who: "mallory" } } },
      };
      const sent = agent.client.sendMessage({ taskId, parts: [answer] });
      await expect(sent).rejects.toMatchObject({ code: "InvalidParams" });
    }
    const stranger = await connect(agent.url);
    await stranger.sendMessage("Enrol me");
    expect(await agent.state(taskId)).toBe("TASK_STATE_AUTH_REQUIRED");
    expect(await post(callback, yes("verifier"))).toBe(200);
  });

  it("nothing after its timeout, whatever clock the answer names", async () => {
    const agent = await asking(50);
    const { taskId, callback } = await agent.begin();
    await vi.waitFor(async () => expect(await agent.state(taskId)).toBe("TASK_STATE_FAILED"));
    const late = JSON.stringify({ credential: { who: "late" }, iat: 0, exp: 9e12, expiresAt: "2999-01-01T00:00:00Z" });
    expect(await post(callback, late)).toBe(410);
    expect(await agent.outcome(taskId)).toBeUndefined();
  });
});

describe("a wallet is not redirected", () => {
  const asked = (authorizationRequest: unknown) => ({ metadata: { [oid4vpUri]: { authorizationRequest } } }) as never;
  const hostile = [
    "http://169.254.169.254/latest/meta-data",
    "http://10.0.0.1/request",
    "http://127.0.0.1.evil.example/r",
    "http://localhost.evil.example/r",
    "http://localhost@evil.example/r",
    "https://verifier.example@evil.example/r",
    "https://verifier.example\\@evil.example/r",
    "https:verifier.example/r",
    "//evil.example/r",
    "javascript:fetch('https://evil.example')",
    "JaVaScRiPt:alert(1)",
    "java\nscript:alert(1)",
    "data:text/html,<script>",
    "file:///etc/passwd",
    "intent://x#Intent;scheme=openid4vp;end",
    "openid4vp://?client_id=verifier&request_uri=http://10.0.0.1/r",
    "openid4vp://?client_id=verifier&request_uri=javascript:alert(1)",
    "openid4vp://?client_id=verifier&request_uri=https%3A%2F%2Fok.example&request_uri=file:///etc/passwd",
    "openid4vp://?client_id=evil",
    "openid4vp://?client_id=verifier&client_id=evil",
    "openid4vp://?client%5Fid=evil",
    "openid4vp://x#?client_id=evil",
    "https://ok.example/r?client_id=evil",
    "https://ok.example/\u202er",
    `https://ok.example/${"x".repeat(20_000)}`,
  ];

  it("by a link to another place, scheme or client", () => {
    for (const request_uri of hostile) {
      expect(readOid4vpRequest(asked({ client_id: "verifier", request_uri })), request_uri).toBeUndefined();
      expect(() => walletUrl({ client_id: "verifier", request_uri })).toThrow(TypeError);
    }
  });

  it("by members of a request that name another place, client or form", () => {
    const inner = (request: unknown) => asked({ client_id: "verifier", request });
    for (const request of [
      { client_id: "evil" },
      { request_uri: "https://evil.example" },
      { request: "eyJhbGciOiJub25lIn0.e30." },
      [{ client_id: "verifier" }],
      "eyJhbGciOiJub25lIn0.e30.",
      { nonce: "x".repeat(20_000) },
    ]) {
      expect(readOid4vpRequest(inner(request)), JSON.stringify(request).slice(0, 60)).toBeUndefined();
    }
    for (const both of [
      { client_id: "verifier", request_uri: "https://ok.example", request: {} },
      { client_id: "verifier" },
      { client_id: ["verifier"], request_uri: "https://ok.example" },
      { client_id: "v".repeat(3000), request_uri: "https://ok.example" },
      JSON.parse('{"__proto__":{"client_id":"verifier","request_uri":"https://ok.example"}}') as object,
    ]) {
      expect(readOid4vpRequest(asked(both))).toBeUndefined();
    }
    // A value from the request remains a single value in the link.
    const link = walletUrl({
      client_id: "a&request_uri=https://evil.example#",
      request: { nonce: "&client_id=evil#" },
    });
    const query = new URL(link).searchParams;
    expect([query.getAll("client_id"), query.getAll("request_uri")]).toEqual([
      ["a&request_uri=https://evil.example#"],
      [],
    ]);
    expect(link).not.toContain("#");
  });

  it("and gets each request once, however often a hostile agent shows it, and only for the task that shows it", async () => {
    const status = (n: number, taskId: string): StreamResponse => ({
      statusUpdate: {
        taskId,
        contextId: "c",
        status: {
          state: "TASK_STATE_AUTH_REQUIRED",
          message: {
            messageId: `m${n}`,
            role: "ROLE_AGENT",
            parts: [{ text: "please" }],
            metadata: {
              [oid4vpUri]: { authorizationRequest: { client_id: "v", request_uri: `https://v.example/${n % 2}` } },
            },
          },
        },
      },
    });
    const seen: PresentationRequest[] = [];
    const canceled: string[] = [];
    const client = {
      async *sendStreamingMessage() {
        for (let at = 0; at < 40; at += 1) yield status(Math.floor(at / 20), "t");
      },
      cancelTask: async (id: string) => void canceled.push(id),
    };
    const wallet = { present: (request: PresentationRequest) => void seen.push(request) };
    for await (const event of presentWith(client, wallet, "go")) expect(event.statusUpdate?.taskId).toBe("t");
    expect(seen.map(({ taskId, authorizationRequest: { request_uri: at } }) => [taskId, at])).toEqual([
      ["t", "https://v.example/0"],
      ["t", "https://v.example/1"],
    ]);
    expect(seen.every(({ signal }) => signal.aborted)).toBe(true);
    expect(canceled).toEqual([]);
  });
});
