import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  defineAgent,
  memoryStore,
  serve,
  type Agent,
  type DelegateClient,
  type ServeOptions,
  type Server,
  type Turn,
} from "@parley/node";
import {
  answerAuthorization,
  connect,
  readAuthorization,
  text,
  type AuthorizationRequest,
  type Client,
  type StreamResponse,
  type Task,
} from "@parley/a2a";
import type { OAuthTokens } from "@parley/a2a/internal/protocol/index";
import { bearer } from "@parley/a2a/auth";
import { grpcBinding } from "@parley/grpc/client";
import { sqliteStore } from "@parley/sql/sqlite";
import { afterAll, describe, expect, onTestFinished, test, vi } from "vitest";
import { browse } from "./logins.ts";
import { startProvider, type TestProvider } from "./provider.ts";

/* In-task authorization over sockets, with a real authorization server, on every binding and version, and along a chain of agents. */

const secret = "MARK-intask-0815";
const key = Buffer.alloc(32, 5).toString("base64");
const callbackPath = "/.well-known/parley/authorization";
const clientSecret = "MARK-client-secret-of-the-shop-0815";

const closers: (() => Promise<void>)[] = [];
afterAll(async () => {
  for (const close of closers.toReversed()) await close();
});

function agentOf(onMessage: (turn: Turn) => ReturnType<Agent["execute"]>): Agent {
  return defineAgent({ name: "Shop", description: "Buys", version: "1", skills: [], onMessage });
}

async function start(agent: Agent, options: Partial<ServeOptions> = {}): Promise<Server> {
  const server = await serve(agent, {
    port: 0,
    grpc: true,
    store: memoryStore(),
    logger: false,
    authenticator: bearer({ ada: { subject: "ada" } }),
    authorization: { keys: [key] },
    ...options,
  });
  onTestFinished(() => server.close());
  return server;
}

const clientOf = (server: Server): Promise<Client> => connect(server.url, { headers: { authorization: "Bearer ada" } });

async function asked(
  events: AsyncIterator<StreamResponse>,
): Promise<{ request: AuthorizationRequest; taskId: string }> {
  for (;;) {
    const { value, done } = await events.next();
    if (done === true) throw new Error("The stream ended");
    const status = value.task?.status ?? value.statusUpdate?.status;
    const request = status?.state === "TASK_STATE_AUTH_REQUIRED" ? readAuthorization(status.message) : undefined;
    if (request !== undefined) return { request, taskId: value.task?.id ?? value.statusUpdate?.taskId ?? "" };
  }
}

async function endOf(events: AsyncIterator<StreamResponse>): Promise<string | undefined> {
  let state: string | undefined;
  for (;;) {
    const { value, done } = await events.next();
    if (done === true) return state;
    state = (value.task?.status ?? value.statusUpdate?.status)?.state ?? state;
  }
}

function post({ url = "" }: AuthorizationRequest, form: Record<string, string>): Promise<Response> {
  const token = new URL(url).searchParams.get("request") ?? "";
  const body = new URLSearchParams({ request: token, ...form });
  return fetch(url, { method: "POST", body, redirect: "manual" });
}

describe("the authorization code flow (RFC 6749 §4.1, RFC 7636, RFC 9207)", () => {
  let provider: TestProvider;

  /** A shop that is a client of the provider. `user` logs in. */
  async function shop(user = "ada", more: object = {}) {
    const got: OAuthTokens[] = [];
    const server = await start(
      agentOf(async function* (turn) {
        const tokens = yield* turn.authorize({
          form: "oauth",
          reason: "Read your calendar",
          server: provider.issuer,
          clientId: "shop",
          clientSecret,
          scope: "openid chat",
          resource: "https://calendar.example.com/",
          parameters: { login_hint: user },
          ...more,
        });
        got.push(tokens);
        yield turn.artifact({ parts: [text("read")] });
      }),
    );
    provider = await startProvider({
      clients: [
        {
          client_id: "shop",
          client_secret: clientSecret,
          redirect_uris: [`${server.url}${callbackPath}`],
          grant_types: ["authorization_code", "refresh_token"],
          response_types: ["code"],
        },
      ],
    });
    closers.push(() => provider.close());
    const client = await clientOf(server);
    const events = client.sendStreamingMessage("When am I free?")[Symbol.asyncIterator]();
    return { server, client, events, got, ...(await asked(events)) };
  }

  /** Continues from the link's page through the provider. Returns the browser's final state. */
  async function throughProvider(request: AuthorizationRequest) {
    const sent = await post(request, { decision: "continue" });
    expect(sent.status).toBe(303);
    const cookie = sent.headers.get("set-cookie")?.split(";")[0] ?? "";
    const back = await browse(sent.headers.get("location") ?? "", request.url?.split("?")[0] ?? "");
    return { cookie, back };
  }

  test("ends at the callback, and the agent gets tokens for the resource", async () => {
    const { request, events, got, client, taskId } = await shop();
    const { cookie, back } = await throughProvider(request);
    const response = await fetch(back, { headers: { cookie } });
    expect(response.status).toBe(200);
    expect(await endOf(events)).toBe("TASK_STATE_COMPLETED");
    expect(got).toMatchObject([
      { tokenType: "bearer", scope: expect.stringContaining("chat"), claims: { sub: "ada" } },
    ]);
    const [, payload = ""] = got[0]?.accessToken.split(".") ?? [];
    expect(JSON.parse(Buffer.from(payload, "base64url").toString())).toMatchObject({
      aud: "https://calendar.example.com/",
    });
    const task = JSON.stringify(await client.getTask(taskId));
    for (const each of [got[0]?.accessToken ?? "-", back.searchParams.get("code") ?? "-", clientSecret]) {
      expect(task).not.toContain(each);
    }
    // The same redirect finds nothing the second time.
    expect((await fetch(back, { headers: { cookie } })).status).toBe(410);
  });

  test("is rejected in a browser that did not come from the page of the link", async () => {
    const { request, got, client, taskId } = await shop();
    const { cookie, back } = await throughProvider(request);
    for (const other of ["", "parley=1", cookie.replace(/.$/, "")]) {
      expect((await fetch(back, { headers: { cookie: other } })).status).toBe(410);
    }
    expect(got).toEqual([]);
    expect((await client.getTask(taskId)).status.state).toBe("TASK_STATE_AUTH_REQUIRED");
    expect((await fetch(back, { headers: { cookie: `a=b; ${cookie}` } })).status).toBe(200);
  });

  test("fails the task if the user declines at the provider", async () => {
    const { request, events, got } = await shop("nobody");
    const { cookie, back } = await throughProvider(request);
    expect(back.searchParams.get("error")).toBe("access_denied");
    expect((await fetch(back, { headers: { cookie } })).status).toBe(200);
    expect(await endOf(events)).toBe("TASK_STATE_FAILED");
    expect(got).toEqual([]);
  });

  test.each<[string, (back: URL) => void]>([
    ["the issuer is another one (RFC 9207)", (back) => back.searchParams.set("iss", "https://other.example.com")],
    ["the code is another one", (back) => back.searchParams.set("code", "stolen")],
    ["there is no code", (back) => back.searchParams.delete("code")],
  ])("fails the task if %s", async (_what, change) => {
    const { request, events, got } = await shop();
    const { cookie, back } = await throughProvider(request);
    change(back);
    await fetch(back, { headers: { cookie } });
    expect(await endOf(events)).toBe("TASK_STATE_FAILED");
    expect(got).toEqual([]);
  });
});

describe("a secret by link and in a message", () => {
  const versions = [
    ["JSONRPC", "1.0"],
    ["HTTP+JSON", "1.0"],
    ["GRPC", "1.0"],
    ["JSONRPC", "0.3"],
    ["HTTP+JSON", "0.3"],
    ["GRPC", "0.3"],
  ] as const;

  const shop = agentOf(async function* (turn) {
    const given = yield* turn.authorize({ form: "secret", reason: "The key", inMessage: true });
    yield turn.artifact({ parts: [text(given === secret ? "bought" : "wrong")] });
  });

  test.each(versions)("work over %s of version %s", async (protocolBinding, version) => {
    const server = await start(shop);
    const card = server.agents[0]?.card;
    if (card === undefined) throw new Error("There is no card");
    const wanted = card.supportedInterfaces.filter(
      (each) => each.protocolBinding === protocolBinding && each.protocolVersion === version,
    );
    const client = await connect(
      { ...card, supportedInterfaces: wanted },
      {
        headers: { authorization: "Bearer ada" },
        bindings: [grpcBinding()],
        credentialOrigins: [new URL(server.url).origin],
      },
    );
    for (const way of ["link", "message"]) {
      const events = client.sendStreamingMessage("Buy")[Symbol.asyncIterator]();
      const { request, taskId } = await asked(events);
      if (way === "link") expect((await post(request, { decision: "give", secret })).status).toBe(200);
      else await client.sendMessage({ parts: [answerAuthorization(request, { credential: secret })], taskId });
      expect(await endOf(events)).toBe("TASK_STATE_COMPLETED");
      const task = await client.getTask(taskId);
      expect(task.artifacts?.[0]?.parts[0]?.text).toBe("bought");
      expect(JSON.stringify(task)).not.toContain(secret);
    }
  });

  test("are nowhere in the SQLite file in clear, neither before the turn knows of them nor later", async () => {
    const folder = await mkdtemp(join(tmpdir(), "parley-intask-"));
    onTestFinished(() => rm(folder, { recursive: true, force: true }));
    const store = await sqliteStore({ path: join(folder, "parley.db") });
    onTestFinished(() => store.close());
    const inFiles = async (): Promise<boolean> => {
      const files = await Promise.all((await readdir(folder)).map((file) => readFile(join(folder, file), "latin1")));
      expect(files.length).toBeGreaterThan(0);
      return files.some((content) => content.includes(secret));
    };
    // The turn rarely polls for answers from other processes, so it does not see this one.
    const first = await start(shop, { store, pollInterval: 3_600_000 });
    const { request, taskId } = await asked(
      (await clientOf(first)).sendStreamingMessage("Buy")[Symbol.asyncIterator](),
    );
    const second = await start(shop, { store });
    const url = new URL(request.url ?? "");
    url.port = String(second.port);
    expect((await post({ ...request, url: url.href }, { decision: "give", secret })).status).toBe(200);
    expect(await inFiles()).toBe(false);
    await first.close();
    const third = await clientOf(await start(shop, { store }));
    await vi.waitFor(async () => expect((await third.getTask(taskId)).status.state).toBe("TASK_STATE_COMPLETED"));
    expect((await third.getTask(taskId)).artifacts?.[0]?.parts[0]?.text).toBe("bought");
    expect(await inFiles()).toBe(false);
  });
});

describe("a chain of agents (A2A 1.0 §7.6.2)", () => {
  test("passes the link to the first caller, and no agent in between sees the credential", async () => {
    const shop = await start(
      agentOf(async function* (turn) {
        const given = yield* turn.authorize({ form: "secret", reason: "The key of your shop", inMessage: true });
        yield turn.artifact({ parts: [text(given === secret ? "bought" : "wrong")] });
      }),
    );
    const seen: string[] = [];
    const middle = await start(
      agentOf(async function* (turn) {
        const client = await connect(shop.url, { headers: { authorization: "Bearer ada" } });
        const { task, artifacts } = yield* turn.delegate(client, turn.text, { artifacts: false });
        seen.push(JSON.stringify([task, artifacts]));
        yield turn.artifact({ parts: artifacts[0]?.parts ?? [] });
      }),
    );
    const client = await clientOf(middle);
    const events = client.sendStreamingMessage("Buy bread")[Symbol.asyncIterator]();
    const { request, taskId } = await asked(events);
    expect(request.url).toMatch(new RegExp(`^${shop.url}/`));
    expect(request.inMessage).toBeUndefined();
    expect((await post(request, { decision: "give", secret })).status).toBe(200);
    expect(await endOf(events)).toBe("TASK_STATE_COMPLETED");
    const task = await client.getTask(taskId);
    expect(task.artifacts?.[0]?.parts[0]?.text).toBe("bought");
    expect(seen.join("")).not.toContain(secret);
    const states = task.history?.map(({ parts }) => parts.map((part) => part.text).join(" "));
    expect(states?.join(" ")).toContain("The key of your shop");
  });

  test("passes on no unsafe link, and no control characters", async () => {
    const middle = await start(
      agentOf(async function* (turn) {
        yield* turn.delegate(clientFor(hostile), "Go");
      }),
    );
    const client = await clientOf(middle);
    const { task: asked } = await client.sendMessage("Go");
    const until = ({ status }: Task): boolean => status.state === "TASK_STATE_COMPLETED";
    const task = await client.waitFor(asked?.id ?? "", { until });
    const texts = JSON.stringify(task.history);
    expect(texts).toContain("Look");
    for (const bad of ["javascript:", "\\u001b"]) expect(texts).not.toContain(bad);
  });
});

test("continues with a task whose server ends the stream at AUTH_REQUIRED (§11.7)", async () => {
  const ids = { taskId: "t", contextId: "c" };
  const asks = { role: "ROLE_AGENT", messageId: "m", parts: [{ text: "Log in there" }] } as const;
  const waits: StreamResponse = {
    statusUpdate: { ...ids, status: { state: "TASK_STATE_AUTH_REQUIRED", message: asks } },
  };
  const reads: string[] = [];
  const client = clientFor(async function* () {
    yield waits;
  });
  const getTask = (id: string): Promise<Task> => {
    const state = reads.push(id) < 3 ? "TASK_STATE_AUTH_REQUIRED" : "TASK_STATE_COMPLETED";
    return Promise.resolve({ id, contextId: "c", status: { state, ...(reads.length < 3 && { message: asks }) } });
  };
  const middle = await start(
    agentOf(async function* (turn) {
      const { task } = yield* turn.delegate({ ...client, getTask }, "Go");
      yield turn.artifact({ parts: [text(task?.status.state ?? "")] });
    }),
  );
  const states: string[] = [];
  for await (const event of (await clientOf(middle)).sendStreamingMessage("Go")) {
    const state = (event.task?.status ?? event.statusUpdate?.status)?.state;
    if (state !== undefined) states.push(state.replace("TASK_STATE_", ""));
  }
  expect(reads).toEqual(["t", "t", "t"]);
  // The request is shown once, though it arrived three times.
  expect(states).toEqual(["SUBMITTED", "AUTH_REQUIRED", "WORKING", "COMPLETED"]);
});

/** A client of an agent that answers every message with the same events. */
function clientFor(events: () => AsyncGenerator<StreamResponse>): DelegateClient {
  const never = (): Promise<never> => Promise.reject(new Error("It is not called"));
  return {
    card: { name: "Shop", capabilities: { streaming: true }, supportedInterfaces: [] },
    sendStreamingMessage: events,
    subscribeToTask: events,
    sendMessage: never,
    getTask: never,
    listTasks: never,
    cancelTask: never,
  };
}

async function* hostile(): AsyncGenerator<StreamResponse> {
  const ids = { taskId: "t", contextId: "c" };
  const member = "urn:parley:extension:in-task-authorization:v1";
  const parts = [
    { text: "Look \u001b[2J" },
    { data: { [member]: { id: "1", form: "x", url: "javascript:alert(1)" } } },
  ];
  const message = { messageId: "m", role: "ROLE_AGENT", parts } as const;
  yield { statusUpdate: { ...ids, status: { state: "TASK_STATE_AUTH_REQUIRED", message } } };
  yield { statusUpdate: { ...ids, status: { state: "TASK_STATE_COMPLETED" } } };
}
