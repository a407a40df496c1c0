import { onTestFinished } from "vitest";
import { connect, readAuthorization, type AuthorizationRequest, type Client } from "@parley/a2a/internal/client/index";
import { createHandler, type Handler, type HandlerOptions } from "../../src/handler.ts";
import { defineAgent, type AgentDefinition } from "../../src/agent/index.ts";
import { memoryStore } from "../../src/store/index.ts";
import type { Agent, AuditRecord, Turn } from "@parley/a2a/internal/protocol/index";
import { bearer } from "@parley/a2a/internal/auth/index";
import type { LogFields, Logger } from "@parley/a2a/internal/base/index";
import type { StreamResponse } from "@parley/a2a/internal/model/index";
import { collect } from "../../../../test/secrets.ts";

/** An agent on a server without a socket. Requests to the agent's URL go directly to its handler. */
export interface Served {
  readonly handler: Handler;
  readonly store: HandlerOptions["store"];
  readonly log: readonly string[];
  readonly audit: readonly AuditRecord[];
  client(user?: string, options?: Parameters<typeof connect>[1]): Promise<Client>;
  fetch(url: string, init?: RequestInit): Promise<Response>;
}

const publicUrl = "https://agents.example.com";
const key = Buffer.alloc(32, 7).toString("base64");

export function agentOf(
  onMessage: (turn: Turn) => ReturnType<AgentDefinition["onMessage"]>,
  more: Partial<AgentDefinition> = {},
): Agent {
  return defineAgent({ name: "Shop", description: "Buys", version: "1", skills: [], ...more, onMessage });
}

export function serving(agent: Agent, options: Partial<HandlerOptions> = {}): Served {
  const log: string[] = [];
  const audit: AuditRecord[] = [];
  const write =
    (level: string) =>
    (message: string, fields?: LogFields): void => {
      collect(message, fields);
      log.push(
        `${level} ${message} ${JSON.stringify(fields, (_name, value: unknown) => (value instanceof Error ? { message: value.message, stack: value.stack, cause: value.cause } : value))}`,
      );
    };
  const logger: Logger = { debug: write("debug"), info: write("info"), warn: write("warn"), error: write("error") };
  const store = options.store ?? memoryStore();
  const handler = createHandler(agent, {
    publicUrl,
    logger,
    authenticator: bearer({ ada: { subject: "ada" }, bob: { subject: "bob" } }),
    authorization: { keys: [key] },
    ...options,
    store,
  });
  onTestFinished(() => handler.close());
  const fetch = (url: string, init?: RequestInit): Promise<Response> => handler.fetch(new Request(url, init));
  return {
    handler,
    store,
    log,
    audit,
    fetch,
    client: (user = "ada", more = {}) =>
      connect(publicUrl, { headers: { authorization: `Bearer ${user}` }, fetch, ...more }),
  };
}

/** Returns the authorization request of a task, once the task has one. */
export async function asked(
  events: AsyncIterator<StreamResponse>,
): Promise<{ request: AuthorizationRequest; taskId: string }> {
  for (;;) {
    const { value, done } = await events.next();
    if (done === true) throw new Error("The stream ended");
    const event = value;
    const status = event.task?.status ?? event.statusUpdate?.status;
    if (status?.state !== "TASK_STATE_AUTH_REQUIRED") continue;
    const request = readAuthorization(status.message);
    if (request === undefined) throw new Error("The message has no request");
    return { request, taskId: event.task?.id ?? event.statusUpdate?.taskId ?? "" };
  }
}

/** Returns the rest of a stream, as states and artifact texts. */
export async function rest(events: AsyncIterator<StreamResponse>): Promise<readonly string[]> {
  const seen: string[] = [];
  for (;;) {
    const { value, done } = await events.next();
    if (done === true) return seen;
    const { task, statusUpdate, artifactUpdate } = value;
    const state = (task?.status ?? statusUpdate?.status)?.state;
    seen.push(state === undefined ? (artifactUpdate?.artifact.parts[0]?.text ?? "") : state.replace("TASK_STATE_", ""));
  }
}

/** Submits a form of the page. */
export function posted(
  served: Pick<Served, "fetch">,
  { url = "" }: AuthorizationRequest,
  form: Record<string, string>,
  init: RequestInit = {},
) {
  const request = new URL(url).searchParams.get("request") ?? "";
  const body = new URLSearchParams({ request, ...form });
  return served.fetch(url, { method: "POST", body, redirect: "manual", ...init });
}
