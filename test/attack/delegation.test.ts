import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { setImmediate as turn } from "node:timers/promises";
import { connect, defineAgent, memoryStore, serve, silentLogger, type Client, type ServeOptions } from "@parley/node";
import { text, type Task } from "@parley/a2a/model";
import { bearer } from "@parley/a2a/auth";
import { describe, expect, it, onTestFinished, vi } from "vitest";

/*
 * Our agent calls a hostile agent (docs/delegation.md; "Delegation" of docs/security.md), which never ends, sends events of other tasks,
 * sends excessive data, redirects, and asks for credentials that belong to others.
 */

const ours = "token-of-our-server-0123456789";
const [ada, bob] = ["token-of-ada-0123456789", "token-of-bob-0123456789"];

interface Call {
  readonly method: string;
  readonly params: {
    readonly id?: string;
    readonly message?: { readonly parts: readonly { readonly text?: string }[] };
  };
}

interface Hostile {
  readonly url: string;
  /** Everything that the hostile agent received: headers and bodies. */
  readonly received: string[];
  readonly calls: Call[];
  /** The number of open streams. */
  streams: number;
}

type Play = (call: Call, send: (result: unknown) => Promise<boolean>, response: ServerResponse) => Promise<void> | void;

/** Starts a hostile agent. `card`: additional members of its card. */
async function hostile(play: Play, card: (url: string) => object = () => ({})): Promise<Hostile> {
  const state: Hostile = { url: "", received: [], calls: [], streams: 0 };
  const answer = async (request: IncomingMessage, response: ServerResponse, body: string): Promise<void> => {
    response.setHeader("content-type", "application/json");
    if (request.method === "GET") {
      const url = `http://${request.headers.host ?? ""}`;
      const supportedInterfaces = [{ url: `${url}/rpc`, protocolBinding: "JSONRPC", protocolVersion: "1.0" }];
      const rest = { description: "x", version: "1", defaultInputModes: [], defaultOutputModes: [], skills: [] };
      const capabilities = { streaming: true };
      return void response.end(
        JSON.stringify({ name: "Evil\u001b[2J\u202e", ...rest, capabilities, supportedInterfaces, ...card(url) }),
      );
    }
    const { id, ...call } = JSON.parse(body) as Call & { readonly id: unknown };
    state.calls.push(call);
    const line = (result: unknown): string => JSON.stringify({ jsonrpc: "2.0", id, result });
    if (!/Stream|Subscribe/.test(call.method)) {
      await play(call, async (result) => response.end(line(result)).writable, response);
      if (!response.writableEnded) response.end(line({}));
      return;
    }
    state.streams += 1;
    let open = true;
    response.on("close", () => {
      open = false;
      state.streams -= 1;
    });
    const send = async (result: unknown): Promise<boolean> => {
      if (!response.headersSent) response.setHeader("content-type", "text/event-stream");
      if (!open) return false;
      if (!response.write(`data: ${line(result)}\n\n`))
        await new Promise<void>((resolve) => response.once("drain", resolve).once("close", resolve));
      await turn();
      return open;
    };
    await play(call, send, response);
    response.end();
  };
  const server = createServer((request, response) => {
    let body = "";
    request.on("data", (chunk: Buffer) => (body += chunk.toString()));
    request.on("end", () => {
      state.received.push([request.method, request.url, JSON.stringify(request.headers), body].join(" "));
      void answer(request, response, body);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return Object.assign(state, { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` });
}

const working = (taskId: string, said: string, at: number) => ({
  statusUpdate: {
    taskId,
    contextId: "c",
    status: {
      state: "TASK_STATE_WORKING",
      message: { messageId: `m${at}`, role: "ROLE_AGENT", parts: [{ text: said }] },
    },
  },
});
const chunk = (taskId: string, artifactId: string, said: string, append: boolean) => ({
  artifactUpdate: { taskId, contextId: "c", append, artifact: { artifactId, parts: [{ text: said }] } },
});
const ended = (taskId: string, state = "COMPLETED", said = "done") => ({
  statusUpdate: {
    taskId,
    contextId: "c",
    status: { state: `TASK_STATE_${state}`, message: { messageId: "e", role: "ROLE_AGENT", parts: [{ text: said }] } },
  },
});
const begun = (id: string) => ({ task: { id, contextId: "c", status: { state: "TASK_STATE_WORKING" } } });

/** Starts our server, whose agent calls the hostile agent. Returns a client for each caller. */
async function between(
  evil: Client,
  options: Partial<ServeOptions> = {},
): Promise<{ readonly ada: Client; readonly bob: Client }> {
  const agent = defineAgent({
    name: "Ours",
    description: "Asks another agent",
    version: "1.0.0",
    skills: [],
    async *onMessage(turn) {
      const { text: said } = yield* turn.delegate(evil, turn.text);
      yield turn.completed(said.slice(0, 100));
    },
  });
  const server = await serve(agent, {
    port: 0,
    signals: false,
    store: memoryStore(),
    logger: silentLogger,
    authenticator: bearer({ [ada]: { subject: "ada" }, [bob]: { subject: "bob" } }),
    ...options,
  });
  onTestFinished(() => server.close({ grace: 0 }));
  const as = (token: string): Promise<Client> =>
    connect(server.url, { headers: { authorization: `Bearer ${token}`, cookie: `session=${token}` } });
  return { ada: await as(ada), bob: await as(bob) };
}

const to = ({ url }: Hostile): Promise<Client> =>
  connect(url, { headers: { authorization: `Bearer ${ours}` }, retry: false });

async function start(client: Client, said: string): Promise<Task> {
  const { task } = await client.sendMessage({
    message: { messageId: crypto.randomUUID(), role: "ROLE_USER", parts: [text(said)] },
    configuration: { returnImmediately: true },
  });
  if (task === undefined) throw new Error("There is no task");
  return task;
}

const stateOf = async (client: Client, { id }: Task): Promise<string> => (await client.getTask(id)).status.state;

describe("a hostile agent that another one calls", () => {
  it("and streams without an end is left when the task is canceled, or larger than it may be", async () => {
    const evil = await hostile(async ({ method, params }, send) => {
      if (method === "CancelTask")
        return void (await send({ id: params.id, status: { state: "TASK_STATE_CANCELED" } }));
      const chunks = params.message?.parts[0]?.text === "chunks";
      await send(begun("t"));
      const much = "x".repeat(4096);
      for (let at = 0; await send(chunks ? chunk("t", "a", much, at > 0) : working("t", much, at)); at += 1);
    });
    const callers = await between(await to(evil), { limits: { taskBytes: 1 << 20 } });
    const endless = await start(callers.ada, "progress");
    await vi.waitFor(() => expect(evil.streams).toBe(1));
    await vi.waitFor(async () => expect(await stateOf(callers.ada, endless)).toBe("TASK_STATE_WORKING"));
    await callers.ada.cancelTask(endless.id);
    await vi.waitFor(() => expect(evil.streams).toBe(0));
    const large = await start(callers.bob, "chunks");
    await vi.waitFor(async () => expect(await stateOf(callers.bob, large)).toBe("TASK_STATE_FAILED"));
    await vi.waitFor(() => expect(evil.streams).toBe(0));
    expect(JSON.stringify(await callers.bob.getTask(large.id)).length).toBeLessThan(2 << 20);
    await vi.waitFor(() =>
      expect(evil.calls.filter(({ method }) => method === "CancelTask").map(({ params }) => params.id)).toEqual([
        "t",
        "t",
      ]),
    );
  });

  it("and names other tasks changes none of them, here and of other callers", async () => {
    const known: string[] = [];
    const evil = await hostile(async ({ method, params }, send) => {
      if (method === "CancelTask" || method === "GetTask")
        return void (await send({ id: params.id, contextId: "c", status: { state: "TASK_STATE_CANCELED" } }));
      const said = params.message?.parts[0]?.text ?? "";
      if (said === "bob") {
        await send(begun("of-bob"));
        while (await send(working("of-bob", "busy", known.length)));
        return;
      }
      // Ada's stream contains the hostile agent's events for Bob's task there, and for both tasks at our server.
      for (const id of ["of-ada", "of-bob", ...known]) {
        await send(begun(id));
        await send(chunk(id, "d1-x", "from mallory", false));
        await send(working(id, "from mallory", 1));
      }
      for (const id of ["of-bob", ...known]) await send(ended(id, "COMPLETED", "not yours"));
    });
    const callers = await between(await to(evil));
    const ofBob = await start(callers.bob, "bob");
    await vi.waitFor(() => expect(evil.streams).toBe(1));
    known.push(ofBob.id);
    const { task } = await callers.ada.sendMessage("ada");
    known.push(task?.id ?? "");
    expect(task?.status.state).toMatch(/COMPLETED|FAILED/);
    const now = await callers.bob.getTask(ofBob.id);
    expect(now.status.state).toBe("TASK_STATE_WORKING");
    expect(JSON.stringify(now)).not.toContain("mallory");
    expect((await callers.ada.listTasks()).tasks.map(({ id }) => id)).toEqual([task?.id]);
    await callers.bob.cancelTask(ofBob.id);
  });

  it("and redirects, or names another host on its card, does not get our credentials there, nor those of our callers anywhere", async () => {
    const elsewhere = await hostile((_, send) => void send(ended("t")));
    const redirects = await Promise.all(
      [301, 302, 303, 307, 308].map((status) =>
        hostile((_call, _send, response) => {
          response.writeHead(status, { location: `${elsewhere.url}/rpc`, "content-type": "text/event-stream" }).end();
        }),
      ),
    );
    const leading = await hostile(
      () => undefined,
      () => ({
        supportedInterfaces: [{ url: `${elsewhere.url}/rpc`, protocolBinding: "JSONRPC", protocolVersion: "1.0" }],
      }),
    );
    for (const evil of [...redirects, leading]) {
      const callers = await between(await to(evil));
      const { task } = await callers.ada.sendMessage("go");
      if (evil !== leading) {
        expect(task?.status.state).toBe("TASK_STATE_FAILED");
        expect(elsewhere.received.filter((one) => one.startsWith("POST"))).toEqual([]);
      }
      for (const secret of [ada, bob]) expect(evil.received.join("\n")).not.toContain(secret);
    }
    for (const secret of [ours, ada, bob]) expect(elsewhere.received.join("\n")).not.toContain(secret);
  });

  it("and sends too much, or ids of any form, fails at most its part, and the server answers others", async () => {
    const names = [
      "__proto__",
      "constructor",
      "toString",
      "d1-d1-x",
      "a b",
      "\u0001",
      "\u202e",
      "../x",
      "x".repeat(1000),
    ];
    const evil = await hostile(async ({ method, params }, send) => {
      if (method === "CancelTask" || method === "GetTask")
        return void (await send({ id: params.id, contextId: "c", status: { state: "TASK_STATE_COMPLETED" } }));
      const said = params.message?.parts[0]?.text ?? "";
      await send(begun("t"));
      if (said === "large") await send(chunk("t", "large", "x".repeat(10 << 20), false));
      if (said === "names")
        for (const name of names) {
          await send(chunk("t", name, name, false));
          await send(chunk("t", name, name, true));
        }
      if (said === "failure") return void (await send(ended("t", "FAILED", `\u001b[2J\u202e${"y".repeat(100_000)}`)));
      await send(ended("t"));
    });
    const callers = await between(await to(evil));
    for (const said of ["large", "names", "failure"]) {
      const { task } = await callers.ada.sendMessage(said);
      expect(task?.status.state, said).toMatch(said === "names" ? /COMPLETED/ : /COMPLETED|FAILED/);
      if (said === "names") {
        expect(
          task?.artifacts?.map(({ artifactId, parts }) => [artifactId, parts.map((part) => part.text).join("")]),
        ).toEqual(names.map((name) => [`d1-${name}`, `${name}${name}`]));
      }
      const words = JSON.stringify(task?.status.message);
      expect(words.length).toBeLessThan(10_000);
      if (said === "failure") expect(words).not.toMatch(/\\u001b|\u202e/);
    }
    expect(({} as Record<string, unknown>)["parts"]).toBeUndefined();
    expect((await callers.bob.sendMessage("ok")).task?.status.state).toBe("TASK_STATE_COMPLETED");
  });

  it("and gives an artifact an id that is too long, fails only its own part", async () => {
    const ids = new Map([
      ["nul", "a\u0000"],
      ["half", "a\ud800"],
      ["long", "y".repeat(1024)],
    ]);
    const evil = await hostile(async ({ method, params }, send) => {
      if (method === "CancelTask")
        return void (await send({ id: params.id, contextId: "c", status: { state: "TASK_STATE_CANCELED" } }));
      const said = params.message?.parts[0]?.text ?? "";
      await send(begun(`t-${said}`));
      const id = ids.get(said);
      if (id !== undefined) await send(chunk(`t-${said}`, id, "x", false));
      await send(ended(`t-${said}`));
    });
    const client = await to(evil);
    const agent = defineAgent({
      name: "Ours",
      description: "Asks several",
      version: "1.0.0",
      skills: [],
      async *onMessage(turn) {
        const asked = [...ids.keys(), "good"].map((said) => turn.delegate(client, { parts: [text(said)] }));
        const all = yield* turn.all(asked, { settled: true });
        yield turn.completed(all.map(({ status }) => status).join());
      },
    });
    const server = await serve(agent, { port: 0, signals: false, store: memoryStore(), logger: silentLogger });
    onTestFinished(() => server.close({ grace: 0 }));
    const { task } = await (await connect(server.url)).sendMessage("go");
    expect(task?.status.message?.parts[0]?.text).toBe("rejected,rejected,rejected,fulfilled");
  });

  it("and asks back in a circle creates a bounded number of tasks", async () => {
    let tasks = 0;
    const urls: string[] = [];
    const other = (at: number) =>
      defineAgent({
        name: `Agent ${at}`,
        description: "Asks the other one",
        version: "1.0.0",
        skills: [],
        async *onMessage(turn) {
          tasks += 1;
          const client = await connect(urls[1 - at] ?? "", { retry: false });
          yield* turn.delegate(client, turn.text);
        },
      });
    for (const at of [0, 1]) {
      const server = await serve(other(at), { port: 0, signals: false, store: memoryStore(), logger: silentLogger });
      onTestFinished(() => server.close({ grace: 0 }));
      urls.push(server.url);
    }
    const { task } = await (await connect(urls[0] ?? "")).sendMessage("go");
    expect(task?.status.state).toBe("TASK_STATE_FAILED");
    expect(tasks).toBeLessThanOrEqual(17);
  });
});
