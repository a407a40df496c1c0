import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { AgentCard, Part, StreamResponse } from "@parley/a2a/internal/model/index";
import type { Client } from "@parley/a2a/internal/client/index";
import { isTerminal } from "@parley/a2a/model";
import { isLoopback } from "@parley/a2a/internal/base/index";
import {
  webhookReceiver,
  webhooksExtension,
  type WebhookDelivery,
  type WebhookReceiver,
  type WebhookTrust,
} from "@parley/a2a/webhooks";
import { line } from "@parley/a2a/internal/base/display";
import { nodeListener } from "@parley/node";
import { fileFetchOf, open, type CallOptions } from "./connection.ts";
import { codeOf, CommandError, UsageError } from "./errors.ts";
import { follow, type FollowOptions } from "./follow.ts";
import { hintsFor } from "./invocation.ts";
import type { Io } from "./io.ts";
import { partsOf, type MessageOptions } from "./message.ts";
import { styleFor } from "./output/text.ts";

interface ListenOptions extends CallOptions, FollowOptions, MessageOptions {
  readonly message?: string;
  readonly port: number;
  readonly publicUrl?: string;
}

/** `parley listen`. Shows the webhooks of a task until it ends. Returns the exit code. */
export async function listen(io: Io, at: string, task: string | undefined, options: ListenOptions): Promise<number> {
  const { message, publicUrl } = options;
  const begins = message !== undefined || options.file !== undefined || options.data !== undefined;
  if ((task === undefined) !== begins) {
    throw new UsageError("pass either [task], the ID of a task, or --message <text> to start one");
  }
  if (publicUrl === undefined && !isLoopback(new URL(at).hostname)) {
    throw new UsageError(
      `${at} cannot reach 127.0.0.1 on this machine. Open a tunnel to --port <port>, and pass its URL as --public-url <url>`,
    );
  }
  const parts = task === undefined ? await partsOf(io, message, options) : [];
  const client = await open(io, at, options);
  if (client.card.capabilities.pushNotifications !== true) {
    throw new CommandError(`${at} does not send webhooks: its card does not declare pushNotifications`);
  }
  const subject = task === undefined ? { parts } : { task };
  const inbox = new Inbox();
  return follow(io, (signal) => deliveries(io, client, subject, { ...options, inbox, signal }), {
    fetch: fileFetchOf(client, at, options.fetchUrls === true),
    hints: hintsFor(at, options, io.program),
    options,
    mayEndEarly: true,
    about: (event) => inbox.about(event, styleFor(io.stderr, io.env)),
  });
}

type Subject = { readonly task: string } | { readonly parts: readonly Part[] };

interface Listening extends ListenOptions {
  readonly inbox: Inbox;
  readonly signal: AbortSignal;
}

/**
 * Yields the webhooks of a task until it ends. For a known task, first yields its current state. For a new task, no event is missed.
 */
async function* deliveries(
  io: Io,
  client: Client,
  subject: Subject,
  { port, publicUrl, inbox, signal }: Listening,
): AsyncGenerator<StreamResponse> {
  const server = await listening(port, "--port");
  const url = publicUrl ?? `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  const receiver = webhookReceiver({
    url,
    accept: trustFor(client.card),
    token: randomBytes(24).toString("base64url"),
    client,
    onEvent: (event, delivery) => inbox.put(event, delivery),
    logger: {
      ...silent,
      info: (text, fields) => refused(io, text, fields),
      error: (text, fields) => refused(io, text, fields),
    },
  });
  server.on("request", nodeListener(receiver.handle));
  const id = `parley-listen-${client.ids.next()}`;
  let registered: string | undefined;
  try {
    let first: StreamResponse;
    if ("task" in subject) {
      await client.createTaskPushNotificationConfig(receiver.config({ id, taskId: subject.task }), { signal });
      registered = subject.task;
      // Read after the registration, so that no event is missed.
      first = { task: await client.getTask(subject.task, { signal }) };
    } else {
      const configuration = { taskPushNotificationConfig: receiver.config({ id }), returnImmediately: true };
      const message = { messageId: client.ids.next(), role: "ROLE_USER" as const, parts: subject.parts };
      first = await client.sendMessage({ message, configuration }, { signal });
      registered = first.task?.id;
    }
    if (first.task === undefined || "task" in subject) yield first;
    if (first.task === undefined || ("task" in subject && isTerminal(first.task.status.state))) return;
    const where = `webhooks of task ${line(first.task.id)} arrive at ${line(url)}`;
    io.stderr.write(`${styleFor(io.stderr, io.env)("dim", where)}\n`);
    yield* inbox.events(first.task.id, signal);
  } finally {
    inbox.close();
    if (registered !== undefined) await unregister(io, client, { taskId: registered, id });
    await closed(server, receiver);
  }
}

const silent = { debug() {}, info() {}, warn() {}, error() {} };

/** Removes the webhook. Otherwise the agent would retry deliveries for days. */
async function unregister(
  io: Io,
  client: Client,
  webhook: { readonly taskId: string; readonly id: string },
): Promise<void> {
  try {
    await client.deleteTaskPushNotificationConfig(webhook);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    io.stderr.write(`Failed to remove webhook ${line(webhook.id)}: ${line(reason)}\n`);
  }
}

/** A fresh secret if the agent signs webhooks, so that no other sender is trusted. */
function trustFor({ capabilities }: AgentCard): WebhookTrust {
  const declared = capabilities.extensions?.find(({ uri }) => uri === webhooksExtension)?.params?.["schemes"];
  const signs = Array.isArray(declared) && declared.includes("StandardWebhooks");
  return signs ? { secret: `whsec_${randomBytes(32).toString("base64")}` } : { tokenOnly: true };
}

/** Listens on this machine. `option`: the option that chose the port. */
export async function listening(port: number, option: string): Promise<Server> {
  const server = createServer().listen(port, "127.0.0.1");
  try {
    await once(server, "listening");
  } catch (cause) {
    const taken = codeOf(cause) === "EADDRINUSE";
    const reason = taken ? "another process is using it" : cause instanceof Error ? cause.message : String(cause);
    throw new CommandError(`cannot listen on port ${port}: ${reason}. Pass another ${option}, or 0 for a free one`, {
      cause,
    });
  }
  return server;
}

/** Answers pending deliveries, then closes. */
async function closed(server: Server, receiver: WebhookReceiver): Promise<void> {
  await receiver.close();
  const done = once(server, "close");
  server.close();
  server.closeIdleConnections();
  const force = setTimeout(() => server.closeAllConnections(), 2000);
  await done;
  clearTimeout(force);
}

/** Reports a rejected delivery. */
function refused(io: Io, text: string, { reason }: Readonly<Record<string, unknown>> = {}): void {
  io.stderr.write(`${line(text)}${typeof reason === "string" ? `: ${line(reason)}` : ""}\n`);
}

interface Waiting {
  readonly event: StreamResponse;
  readonly delivery: WebhookDelivery;
  /** Sends the answer. */
  readonly shown: () => void;
}

/** Webhooks between the receiver and the output. A sender is answered once its event is shown, so few webhooks wait here. */
class Inbox {
  readonly #waiting: Waiting[] = [];
  readonly #known = new WeakMap<StreamResponse, WebhookDelivery>();
  #closed = false;
  #wake = (): void => {};

  async put(event: StreamResponse, delivery: WebhookDelivery): Promise<void> {
    if (this.#closed) return;
    this.#known.set(event, delivery);
    await new Promise<void>((shown) => {
      this.#waiting.push({ event, delivery, shown });
      this.#wake();
    });
  }

  /** The events of a task until one ends it. */
  async *events(taskId: string, signal: AbortSignal): AsyncGenerator<StreamResponse> {
    signal.addEventListener("abort", () => this.#wake(), { once: true });
    while (!signal.aborted) {
      const next = this.#waiting.shift();
      if (next === undefined) {
        await new Promise<void>((wake) => (this.#wake = wake));
        continue;
      }
      const { event, delivery, shown } = next;
      try {
        if (delivery.taskId === taskId) yield event;
      } finally {
        shown();
      }
      const state = event.task?.status.state ?? event.statusUpdate?.status.state;
      if (delivery.taskId === taskId && state !== undefined && isTerminal(state)) return;
    }
  }

  close(): void {
    this.#closed = true;
    for (const { shown } of this.#waiting.splice(0)) shown();
  }

  /** How an event was delivered, and how its sender was verified. */
  about(event: StreamResponse, style: ReturnType<typeof styleFor>): string | undefined {
    const delivery = this.#known.get(event);
    if (delivery === undefined) return undefined;
    const { sequence, attempt = 1, missed, fetched, trust } = delivery;
    const facts = [
      `webhook${sequence === undefined ? "" : ` ${sequence}`}`,
      ...("tokenOnly" in trust ? [] : ["signature verified"]),
      ...(attempt > 1 ? [`attempt ${attempt}`] : []),
      ...(missed === undefined ? [] : [`${missed} missing before it`]),
      ...(fetched === "reference" ? ["fetched from the agent, since it was too large"] : []),
    ];
    const known = style("dim", facts.join(", "));
    return "tokenOnly" in trust
      ? `${known}${style("yellow", ", not signed: only its token shows that the agent sent it")}`
      : known;
  }
}
