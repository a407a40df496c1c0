import type { Client, Message, StreamResponse } from "@parley/a2a";
import { isInterrupted, isTerminal, type SendMessageRequest } from "@parley/a2a/model";
import type { Start } from "./follow.ts";

/** What the user says. */
export type Said = Pick<Message, "parts" | "contextId" | "taskId">;

interface SendingOptions {
  readonly streams: boolean;
  /** Whether to wait until the task ends or asks. */
  readonly wait: boolean;
  readonly configuration?: SendMessageRequest["configuration"];
}

/** A message to an agent, as a call to follow. Each call sends the same message. */
export function sending(client: Client, said: Said, { streams, wait, configuration }: SendingOptions): Start {
  const message: Message = { messageId: client.ids.next(), role: "ROLE_USER", ...said };
  const request: SendMessageRequest = { message, ...(configuration !== undefined && { configuration }) };
  return (signal) =>
    streams ? client.sendStreamingMessage(request, { signal }) : answer(client, request, wait, signal);
}

/** A send that waits, as a stream of one event. Some servers answer before the task has ended: then the task is polled. */
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
