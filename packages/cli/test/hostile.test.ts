import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Io } from "../src/io.ts";
import { createProgram, run } from "../src/program.ts";
import { recordedIo } from "./support/io.ts";

/**
 * An agent that puts control characters, hidden text and very long values wherever it may write: none of it may act on the terminal,
 * whatever the command is.
 */

const evil = "\u001b[2J\u001b]0;owned\u0007\r\u009b1m\u202e\u2066\u{e0041}\u2028<script>";
/** What a terminal would act on. */
// eslint-disable-next-line no-control-regex
const acting = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069\u{e0000}-\u{e00ff}]/u;

let server: Server | undefined;
let folder = "";
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "parley-hostile-"));
  await writeFile(join(folder, "keys.json"), '{"keys":[]}');
});
afterEach(async () => {
  await rm(folder, { recursive: true });
  server?.closeAllConnections();
  server?.close();
  server = undefined;
});

interface Hostile {
  /** Text in every field of the card. */
  readonly text: string;
  /** How many entries its lists have. */
  readonly entries: number;
}

/** An agent's answer: a task or an error. */
type Answer = "task" | "error";

async function hostileAgent(answer: Answer, { text, entries }: Hostile = { text: evil, entries: 1 }): Promise<string> {
  const many = <T>(entry: T): readonly T[] => Array.from({ length: entries }, () => entry);
  const message = { messageId: text, role: "ROLE_AGENT", parts: [{ text }, { data: { [text]: text } }] };
  const file = { raw: "AAAA", filename: text, mediaType: text, metadata: { [text]: text } };
  const task = {
    id: text,
    contextId: text,
    status: { state: "TASK_STATE_FAILED", message, timestamp: "2026-01-31T12:00:00Z" },
    history: [message],
    artifacts: [{ artifactId: text, name: text, description: text, parts: [file, { url: text }, { text }] }],
    metadata: { [text]: text },
  };
  const results: Readonly<Record<string, unknown>> = {
    SendMessage: { task },
    SendStreamingMessage: { task },
    SubscribeToTask: { task },
    GetTask: task,
    CancelTask: task,
    ListTasks: { tasks: [task], nextPageToken: text, pageSize: 1, totalSize: 9 },
  };
  const error = {
    code: -32001,
    message: text,
    data: [
      {
        "@type": "type.googleapis.com/google.rpc.BadRequest",
        fieldViolations: many({ field: text, description: text }),
      },
    ],
  };
  const card = (url: string): unknown => ({
    name: text,
    description: text,
    version: text,
    provider: { organization: text, url: text },
    documentationUrl: text,
    supportedInterfaces: [
      { url, protocolBinding: "JSONRPC", protocolVersion: "1.0", tenant: text },
      ...many({ url: text, protocolBinding: text, protocolVersion: text }),
    ],
    capabilities: { streaming: true, pushNotifications: true, extensions: many({ uri: text, required: false }) },
    defaultInputModes: many(text),
    defaultOutputModes: many(text),
    skills: many({ id: text, name: text, description: text, tags: many(text), examples: many(text) }),
    securitySchemes: {
      [text]: { httpAuthSecurityScheme: { scheme: "bearer", description: text, bearerFormat: text } },
    },
    signatures: many({
      protected: btoa(JSON.stringify({ alg: "ES256", kid: "\u001b[2J", jku: "\u001b[2J" })),
      signature: text,
    }),
    securityRequirements: many({ schemes: { [text]: { list: many(text) } } }),
  });
  return serving(async (request, response) => {
    response.setHeader("content-type", "application/json");
    if (request.method === "GET") return response.end(JSON.stringify(card(`http://${request.headers.host ?? ""}/`)));
    const { id, method } = (await json(request)) as { id: string; method: string };
    const body = answer === "error" ? { error } : { result: results[method] ?? {} };
    const reply = JSON.stringify({ jsonrpc: "2.0", id, ...body });
    if (answer === "error" || !/Stream|Subscribe/.test(method)) return response.end(reply);
    return response.setHeader("content-type", "text/event-stream").end(`data: ${reply}\n\n`);
  });
}

async function json(request: IncomingMessage): Promise<unknown> {
  let text = "";
  for await (const chunk of request) text += String(chunk);
  return JSON.parse(text);
}

async function serving(answer: (request: IncomingMessage, response: ServerResponse) => unknown): Promise<string> {
  server = createServer((request, response) => void answer(request, response)).listen(0, "127.0.0.1");
  await once(server, "listening");
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** Command lines that call an agent. */
const calls: Readonly<Record<string, readonly string[]>> = {
  card: ["card", "URL"],
  "card lint": ["card", "lint", "URL"],
  "card verify": ["card", "verify", "URL", "--keys", "KEYS"],
  send: ["send", "URL", "hello"],
  "send without a stream": ["send", "URL", "hello", "--no-stream"],
  watch: ["watch", "URL", "task"],
  listen: ["listen", "URL", "--message", "hello"],
  task: ["task", "URL", "task"],
  tasks: ["tasks", "URL"],
  cancel: ["cancel", "URL", "task"],
  login: ["login", "URL"],
  doctor: ["doctor", "URL", "--message", "Hello"],
  mcp: ["mcp", "URL", "--http", "0"],
  conform: ["conform", "URL", "--behaviors", "none", "--filter", "CARD-*"],
};

/** Commands for operators: they show names, reasons and texts of other people. */
const operators: Readonly<Record<string, readonly string[]>> = {
  "ops list": ["ops", "list"],
  "ops show": ["ops", "show", "task"],
  "ops log": ["ops", "log", "task"],
  "ops why": ["ops", "why", "task"],
  "ops counts": ["ops", "counts"],
  "ops nodes": ["ops", "nodes"],
  "ops audit": ["ops", "audit"],
  "ops cancel": ["ops", "cancel", "task"],
  "ops resume": ["ops", "resume", "task"],
  "ops retry-step": ["ops", "retry-step", "task", "step"],
  "ops drop-wait": ["ops", "drop-wait", "task", "wait"],
  "ops pause": ["ops", "pause", evil],
  "ops unpause": ["ops", "unpause", evil],
  "ops drain": ["ops", "drain", evil],
  "ops undrain": ["ops", "undrain", evil],
  top: ["top", "--once"],
};

/** Commands that show nothing of an agent in the terminal. The lines that `logs` reads are hostile in logs.test.ts. */
const ofOurOwn = ["serve", "dev", "key", "push", "db", "init", "logout", "whoami", "inspect", "logs"];

/** A server whose operators' API answers with the text in place of every text and number. */
async function hostileOperators(answer: Answer | "refusal", text: string): Promise<string> {
  const task = {
    agent: text,
    owner: text,
    taskId: text,
    contextId: text,
    state: `TASK_STATE_${text}`,
    statusTime: text,
    seq: text,
    bytes: text,
    node: text,
    run: { turn: text, attempt: text, deaths: text, suspended: false },
  };
  const wait = { kind: "event", text, help: text, wait: text, event: text, until: text };
  const entry = {
    seq: text,
    kind: text,
    time: text,
    actor: text,
    turn: text,
    attempt: text,
    state: `TASK_STATE_${text}`,
  };
  const act = { number: text, act: text, time: text, by: text, organization: text, reason: text, outcome: text };
  const named = { agent: text, taskId: text, node: text, name: text, before: text, after: text };
  const everything = {
    tasks: [task],
    next: text,
    task,
    why: wait,
    waits: [wait],
    steps: [{ name: text, scope: text, state: text }],
    webhooks: [{ id: text, url: text, state: text, delivered: text, attempts: text, next: text, problem: text }],
    takeovers: [{ turn: text, attempt: text, time: text, node: text, from: text }],
    delegations: [{ number: text, agent: text, taskId: text, state: text }],
    log: [entry],
    entries: [entry],
    acts: [{ ...act, ...named }],
    states: { [text]: text },
    agents: [{ agent: text, states: { [`TASK_STATE_${text}`]: text }, paused: true }],
    queue: { count: text, more: true, oldestMs: text },
    runs: { count: text, more: true, suspended: text, free: text },
    nodes: [{ name: text, self: true, silentMs: text, draining: true, gone: true, agents: [text], runs: text }],
  };
  const bodies = {
    task: { ok: true, ...everything, continues: text },
    refusal: { ok: false, reason: text, message: text, task },
    error: { error: { code: text, message: text } },
  };
  return serving((_request, response) =>
    response
      .writeHead(answer === "error" ? 500 : 200, { "content-type": "application/json" })
      .end(JSON.stringify(bodies[answer])),
  );
}

async function shown(words: readonly string[], url: string, ...more: string[]): Promise<string> {
  const { io, both, interrupt } = recordedIo({
    env: { XDG_CONFIG_HOME: folder, PARLEY_KEYCHAIN: "off" },
    stdin: "a-token\n",
  });
  const stdout: Io["stdout"] = {
    ...io.stdout,
    write(text) {
      io.stdout.write(text);
      // This one serves until it is stopped.
      if (text.includes("MCP server is ready")) interrupt("SIGINT");
    },
  };
  const stderr: Io["stderr"] = {
    ...io.stderr,
    write(text) {
      io.stderr.write(text);
      // The command listens until it is stopped, because no webhook comes.
      if (text.includes(" arrive at ")) interrupt("SIGINT");
    },
  };
  await run([...words.map((word) => ({ URL: url, KEYS: join(folder, "keys.json") })[word] ?? word), ...more], {
    ...io,
    stdout,
    stderr,
  });
  return both();
}

test("every command that calls an agent is tested", () => {
  const all = createProgram(recordedIo().io, () => {}).commands.map((command) => command.name());
  const tried = new Set([...Object.values({ ...calls, ...operators }).map(([name = ""]) => name), ...ofOurOwn]);
  expect(tried).toEqual(new Set(all));
  const ops = createProgram(recordedIo().io, () => {}).commands.find((command) => command.name() === "ops");
  const parts = ops?.commands.map((command) => `ops ${command.name()}`);
  expect(new Set([...(parts ?? []), "top"])).toEqual(new Set(Object.keys(operators)));
});

describe.each(Object.entries(operators))("parley %s", (_, words) => {
  test.each(["task", "refusal", "error"] as const)(
    "shows a hostile %s of the operators' API, without effect",
    async (answer) => {
      const url = `${await hostileOperators(answer, evil)}/ops`;
      for (const more of [[], ["--json"], ["--verbose"]]) {
        const text = await shown(words, url, "--url", url, ...more);
        expect(text).not.toMatch(acting);
        expect(text.length).toBeGreaterThan(5);
      }
    },
  );
});

describe.each(Object.entries(calls))("parley %s", (_, words) => {
  test.each(["task", "error"] as const)("shows a hostile %s, without effect", async (answer) => {
    const url = await hostileAgent(answer);
    for (const more of [[], ["--json"], ["--verbose"]]) {
      const text = await shown(words, url, ...more);
      expect(text).not.toMatch(acting);
      expect(text.length).toBeGreaterThan(10);
    }
  });

  test("shows the beginning of long values and long lists", async () => {
    const url = await hostileAgent("error", { text: "x".repeat(3000), entries: 15 });
    expect((await shown(words, url)).length).toBeLessThan(60_000);
  });
});

test("parley top draws hostile names without effect", async () => {
  const { io, both } = recordedIo({ terminal: true });
  const url = `${await hostileOperators("task", evil)}/ops`;
  expect(await run(["top", "--once", "--url", url], io)).toBe(0);
  expect(both()).toContain("owned");
  expect(both()).not.toMatch(acting);
});

test("the name of a hostile card is stored and shown without effect", async () => {
  const url = await hostileAgent("task");
  await shown(["login", "URL"], url);
  for (const command of [["whoami"], ["whoami", "URL"], ["whoami", "--json"], ["logout", "URL"]]) {
    const text = await shown(command, url);
    expect(text).toContain("owned");
    expect(text).not.toMatch(acting);
  }
});

test("a card with thousands of skills does not fill the terminal, and the output says what was left out", async () => {
  const url = await hostileAgent("task", { text: "x", entries: 120 });
  const text = await shown(["card", "URL"], url);
  expect(text).toContain("… 70 more; --json shows all");
  expect(text.length).toBeLessThan(60_000);
  expect(JSON.parse(await shown(["card", "URL"], url, "--json"))).toMatchObject({ skills: { length: 120 } });
});

test("a page instead of a card has no effect", async () => {
  for (const status of [200, 302, 401, 403, 404, 429, 500]) {
    const headers = { "www-authenticate": `Bearer realm="x"`, "retry-after": "0", location: "/%1b[2J" };
    const url = await serving((_request, response) => response.writeHead(status, headers).end(evil));
    for (const more of [[], ["--verbose"]]) expect(await shown(["card", "URL"], url, ...more)).not.toMatch(acting);
    server?.closeAllConnections();
    server?.close();
  }
});
