import { defined } from "@parley/a2a/internal/base/defined";
import type { Client } from "@parley/a2a/internal/client/index";
import type { Message, StreamResponse } from "@parley/a2a/internal/model/index";
import { isInterrupted, isTerminal, type SendMessageRequest } from "@parley/a2a/model";
import { fileFetchOf, open, type CallOptions } from "./connection.ts";
import { follow, type FollowOptions, type Start } from "./follow.ts";
import { hintsFor } from "./invocation.ts";
import type { Io } from "./io.ts";
import { partsOf, type MessageOptions } from "./message.ts";

interface SendOptions extends CallOptions, FollowOptions, MessageOptions {
  readonly context?: string;
  readonly task?: string;
  readonly accept?: string;
  readonly stream: boolean;
  readonly wait: boolean;
}

/** `parley send`. */
export async function send(io: Io, at: string, text: string | undefined, options: SendOptions): Promise<number> {
  const parts = await partsOf(io, text, options);
  const client = await open(io, at, options);
  const configuration = defined({
    acceptedOutputModes: options.accept?.split(",").map((mode) => mode.trim()),
    returnImmediately: options.wait ? undefined : true,
  });
  const streams = options.stream && options.wait && client.card.capabilities.streaming === true;
  const saying = (said: Said): Start => sending(client, said, { streams, wait: options.wait, configuration });
  // After a message from standard input, there is no terminal to answer with.
  const asks =
    io.interactive && options.json !== true && options.wait && ![text, ...(options.data ?? [])].includes("-");
  const start = saying({ parts, ...defined({ contextId: options.context, taskId: options.task }) });
  return follow(io, start, {
    fetch: fileFetchOf(client, at, options.fetchUrls === true),
    hints: hintsFor(at, options, io.program),
    options,
    known: streams && options.task !== undefined,
    streams,
    ...(asks && { answer: (taskId, data) => saying({ taskId, parts: [{ data }] }) }),
    mayEndEarly: !options.wait,
  });
}

/** Without streaming: the task now, and again once it has ended. */
async function* poll(client: Client, id: string, signal: AbortSignal): AsyncGenerator<StreamResponse> {
  const task = await client.getTask(id, { signal });
  yield { task };
  if (isTerminal(task.status.state) || isInterrupted(task.status.state)) return;
  yield { task: await client.waitFor(id, { signal }) };
}

/** `parley watch`. */
export async function watch(io: Io, at: string, id: string, options: CallOptions & FollowOptions): Promise<number> {
  const client = await open(io, at, options);
  const streams = client.card.capabilities.streaming === true;
  const asks = io.interactive && options.json !== true;
  return follow(io, (signal) => (streams ? client.subscribeToTask(id, { signal }) : poll(client, id, signal)), {
    fetch: fileFetchOf(client, at, options.fetchUrls === true),
    hints: hintsFor(at, options, io.program),
    options,
    streams,
    leavesAtForm: true,
    ...(asks && { answer: (taskId, data) => sending(client, { taskId, parts: [{ data }] }, { streams, wait: true }) }),
  });
}

type Said = Pick<Message, "parts" | "contextId" | "taskId">;

interface SendingOptions {
  readonly streams: boolean;
  /** Whether to wait until the task ends or needs input. */
  readonly wait: boolean;
  readonly configuration?: SendMessageRequest["configuration"];
}

/** Sends a message. Each start sends the same message. */
function sending(client: Client, said: Said, { streams, wait, configuration }: SendingOptions): Start {
  const message: Message = { messageId: client.ids.next(), role: "ROLE_USER", ...said };
  const request: SendMessageRequest = { message, ...(configuration !== undefined && { configuration }) };
  return (signal) =>
    streams ? client.sendStreamingMessage(request, { signal }) : answer(client, request, wait, signal);
}

/** A send that waits, as a stream of one event. If the server answers before the task ends, the task is polled. */
async function* answer(
  client: Client,
  request: SendMessageRequest,
  wait: boolean,
  signal: AbortSignal,
): AsyncGenerator<StreamResponse> {
  const response = await client.sendMessage(request, { signal });
  const { task } = response;
  const works = task !== undefined && !isTerminal(task.status.state) && !isInterrupted(task.status.state);
  yield works && wait ? { task: await client.waitFor(task, { signal }) } : response;
}
