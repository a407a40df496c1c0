import { setTimeout as sleep } from "node:timers/promises";
import { onTestFinished } from "vitest";
import { defineAgent, serve, type Logger, type ServeOptions, type Turn } from "@parley/node";
import { postgresStore, type PostgresStoreOptions } from "@parley/sql/postgres";
import { collect } from "../secrets.ts";

/* Starts servers on PostgreSQL with counting agents. The test sees them as clients and probes do, with a record of the events in their turns. */

export interface CounterOptions {
  readonly store?: Partial<PostgresStoreOptions>;
  readonly serve?: Partial<ServeOptions>;
}

/** One event in a turn. */
export interface Happened {
  readonly node: string;
  readonly what: "begun" | "aborted" | "step" | "late step" | "ended";
  readonly taskId: string;
  readonly attempt: number;
  /** The kind of the abort reason. */
  readonly kind?: string;
}

/** The state that the agents of a test share. */
export class Counting {
  /** If true, tasks end with their next number. */
  isOver = false;
  readonly happened: Happened[] = [];
  readonly say: (happened: Happened) => void = (happened) => void this.happened.push(happened);
}

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

/** The events that a client has received from a stream. */
export interface Heard {
  readonly status: number;
  readonly taskId: string;
  /** The numbers in the received events. */
  readonly numbers: readonly number[];
  /** The received events in order, without SSE comments. */
  readonly events: readonly string[];
  readonly isOpen: boolean;
}

export interface Counter {
  readonly url: string;
  readonly log: readonly { readonly level: string; readonly message: string; readonly cause?: unknown }[];
  get(path: string): Promise<Answer>;
  post(path: string, body: object): Promise<Answer>;
  /** Starts a task, and listens to its stream. Resolves once the task id is known. */
  stream(text: string, path?: string): Promise<Heard>;
  /** Listens to a task. */
  subscribe(taskId: string): Promise<Heard>;
  close(): Promise<void>;
}

export function messageOf(text: string, more: object = {}): object {
  const message = { messageId: crypto.randomUUID(), role: "ROLE_USER", parts: [{ text }] };
  return { message, configuration: { returnImmediately: true }, ...more };
}

/**
 * Starts a server. Its agent at `/` yields numbers, at least one, until the counting is over, with a step before each if the message is `Steps`.
 * This agent is resumable; the agent at `/plain` is not. The processes do not know that they share a machine.
 */
export async function startCounter(
  name: string,
  database: string,
  counting: Counting,
  options: CounterOptions = {},
): Promise<Counter> {
  const log: { level: string; message: string; cause?: unknown }[] = [];
  const logger = logTo(log);
  const store = await postgresStore({ database, logger, connections: 5, ...options.store });
  const card = { description: "Says numbers", version: "1.0.0", skills: [] };
  const onMessage = (turn: Turn): AsyncGenerator<never, void, void> => count(name, turn, counting) as never;
  const server = await serve(
    [
      { path: "/", agent: defineAgent({ ...card, name: "Counter", resumable: true, onMessage }) },
      { path: "/plain", agent: defineAgent({ ...card, name: "Plain", onMessage }) },
    ],
    { port: 0, store, logger, signals: false, lease: { isGone: () => false }, ...options.serve },
  );
  let closing: Promise<void> | undefined;
  const close = (): Promise<void> => (closing ??= server.close({ grace: 0 }).then(() => store.close()));
  onTestFinished(close);
  const url = server.url.replace(/\/$/, "");
  const ask = async (path: string, init: RequestInit = {}): Promise<Response> =>
    fetch(`${url}${path}`, { ...init, headers: { "content-type": "application/json", "a2a-version": "1.0" } });
  const answered = async (asked: Promise<Response>): Promise<Answer> => {
    const response = await asked;
    return { status: response.status, headers: response.headers, text: await response.text() };
  };
  return {
    url,
    log,
    close,
    get: (path) => answered(ask(path)),
    post: (path, body) => answered(ask(path, { method: "POST", body: JSON.stringify(body) })),
    stream: async (text, path = "") =>
      hear(await ask(`${path}/message:stream`, { method: "POST", body: JSON.stringify(messageOf(text)) })),
    subscribe: async (taskId) => hear(await ask(`/tasks/${taskId}:subscribe`)),
  };
}

async function* count(node: string, turn: Turn, counting: Counting): AsyncGenerator {
  const { taskId, attempt } = turn;
  const say = (what: Happened["what"], kind?: string): void =>
    counting.say({ node, what, taskId, attempt, ...(kind !== undefined && { kind }) });
  say("begun");
  const isAborted = new Promise<void>((resolve) => {
    turn.signal.addEventListener("abort", () => {
      say("aborted", (turn.signal.reason as { kind?: string } | undefined)?.kind);
      resolve();
    });
  });
  try {
    let n = Number(turn.checkpoint ?? 0);
    do {
      if (turn.text === "Steps") await turn.step(`step ${n}`, () => say("step"));
      yield [turn.artifact({ artifactId: `${n}`, parts: [{ text: node }] }), turn.saveCheckpoint(n + 1)];
      if (!counting.isOver) await Promise.race([sleep(40), isAborted]);
      // The agent ignores the abort, and continues with a side effect.
      if (turn.signal.aborted) await turn.step(`after ${n}`, () => say("late step"));
      n += 1;
    } while (!counting.isOver);
  } finally {
    say("ended");
  }
}

function logTo(lines: { level: string; message: string; cause?: unknown }[]): Logger {
  const at =
    (level: string) =>
    (message: string, fields?: { readonly cause?: unknown }): void => {
      collect(message, fields);
      lines.push({ level, message, ...(fields?.cause !== undefined && { cause: fields.cause }) });
    };
  return {
    debug: (message, fields) => collect(message, fields),
    info: at("info"),
    warn: at("warn"),
    error: at("error"),
  };
}

/** Reads a stream until it ends. Resolves once the stream has sent the id of its task, or has ended without an id. */
async function hear(response: Response): Promise<Heard> {
  const heard = { status: response.status, taskId: "", numbers: [] as number[], events: [] as string[], isOpen: true };
  let text = "";
  const read = async (): Promise<void> => {
    const decoder = new TextDecoder();
    for await (const bytes of response.body ?? []) {
      text += decoder.decode(bytes as Uint8Array, { stream: true });
      const blocks = text.split("\n\n");
      text = blocks.pop() ?? "";
      for (const block of blocks) note(block);
    }
  };
  const note = (block: string): void => {
    const data = block.split("\n").find((line) => line.startsWith("data:"));
    if (data === undefined) return;
    heard.events.push(block);
    const event = JSON.parse(data.slice(5)) as {
      task?: { id: string; artifacts?: readonly { artifactId: string }[] };
      artifactUpdate?: { artifact: { artifactId: string } };
    };
    heard.taskId ||= event.task?.id ?? "";
    for (const { artifactId } of event.task?.artifacts ?? []) heard.numbers.push(Number(artifactId));
    if (event.artifactUpdate !== undefined) heard.numbers.push(Number(event.artifactUpdate.artifact.artifactId));
  };
  const reading = read()
    .catch((error: unknown) => void heard.events.push(String(error)))
    .finally(() => (heard.isOpen = false));
  while (heard.taskId === "" && heard.isOpen) await Promise.race([reading, sleep(5)]);
  return heard;
}
