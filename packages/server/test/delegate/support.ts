import { onTestFinished } from "vitest";
import { connect, type Client } from "@parley/a2a/internal/client/index";
import { createHandler, type Handler, type HandlerOptions } from "../../src/handler.ts";
import { defineAgent, type AgentDefinition } from "../../src/agent/index.ts";
import { memoryStore, type Store } from "../../src/store/index.ts";
import type { Agent, Turn } from "@parley/a2a/internal/protocol/index";
import type { StreamResponse } from "@parley/a2a/internal/model/index";
import type { LogFields, Logger } from "@parley/a2a/internal/base/index";
import { collect } from "../../../../test/secrets.ts";

/* Runs agents that call agents, each on a server without a socket. */

export type OnMessage = (turn: Turn) => ReturnType<AgentDefinition["onMessage"]>;

export function agentOf(onMessage: OnMessage, more: Partial<AgentDefinition> = {}): Agent {
  return defineAgent({ name: "Agent", description: "Works", version: "1", skills: [], ...more, onMessage });
}

export interface Served {
  readonly handler: Handler;
  readonly store: Store;
  readonly log: readonly string[];
  /** Connects a client to the agent. `requests` records the client's calls. */
  client(options?: Parameters<typeof connect>[1]): Promise<Client>;
  /** The names of the called operations. */
  readonly requests: string[];
  fetch(url: string, init?: RequestInit): Promise<Response>;
}

let served = 0;

export function serving(agent: Agent, options: Partial<HandlerOptions> = {}): Served {
  const publicUrl = `https://agent-${(served += 1)}.example.com`;
  const log: string[] = [];
  const requests: string[] = [];
  const write =
    (level: string) =>
    (message: string, fields?: LogFields): void => {
      collect(message, fields);
      const seen = (_: string, value: unknown): unknown => (value instanceof Error ? String(value.stack) : value);
      log.push(`${level} ${message} ${JSON.stringify(fields, seen)}`);
    };
  const logger: Logger = { debug: write("debug"), info: write("info"), warn: write("warn"), error: write("error") };
  const store = options.store ?? memoryStore();
  const handler = createHandler(agent, {
    publicUrl,
    logger,
    ...options,
    store,
  });
  onTestFinished(() => handler.close());
  const fetch = async (url: string, init?: RequestInit): Promise<Response> => {
    const { method } = JSON.parse(typeof init?.body === "string" ? init.body : "{}") as { method?: string };
    if (method !== undefined) requests.push(method);
    return handler.fetch(new Request(url, init));
  };
  return {
    handler,
    store,
    log,
    requests,
    fetch,
    client: (more = {}) => connect(publicUrl, { fetch, ...more }),
  };
}

/** Returns an event in short form: its state with the text of its message, or the id, text and end of its chunk. */
function gist(event: StreamResponse): string {
  const { task, statusUpdate, artifactUpdate, message } = event;
  const status = (task ?? statusUpdate)?.status;
  if (status !== undefined) {
    const text = status.message?.parts.map((part) => part.text ?? "…").join("") ?? "";
    return `${task === undefined ? "" : "task "}${status.state.replace("TASK_STATE_", "")}${text && `: ${text}`}`;
  }
  if (artifactUpdate === undefined) return `message ${message?.parts[0]?.text ?? ""}`;
  const { artifact, append, lastChunk } = artifactUpdate;
  const text = artifact.parts.map((part) => part.text ?? "…").join("");
  return `${append === true ? "+" : ""}${artifact.artifactId} ${text}${lastChunk === true ? "." : ""}`;
}

export async function gists(events: AsyncIterable<StreamResponse>): Promise<readonly string[]> {
  const all: string[] = [];
  for await (const event of events) all.push(gist(event));
  return all;
}

/** Creates a promise that a test resolves. */
export function gate(): { readonly opened: Promise<void>; open(): void } {
  let open = (): void => {};
  const opened = new Promise<void>((resolve) => (open = resolve));
  return { opened, open };
}
