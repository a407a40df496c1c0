import type { Part, StreamResponse } from "@parley/a2a";
import { isInterrupted, isTerminal, type SendMessageRequest } from "@parley/a2a/model";
import type { Client } from "@parley/a2a/client";
import { open } from "../connection.ts";
import { UsageError } from "../errors.ts";
import { filePart } from "../files.ts";
import { follow, type FollowOptions } from "../follow.ts";
import { hintsFor } from "../hints.ts";
import type { Io } from "../io.ts";
import type { CallOptions } from "../options.ts";

export interface SendOptions extends CallOptions, FollowOptions {
  readonly file?: readonly string[];
  readonly context?: string;
  readonly task?: string;
  readonly accept?: string;
  readonly stream: boolean;
  readonly wait: boolean;
}

async function readAll(stdin: Io["stdin"]): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const chunk of stdin) text += typeof chunk === "string" ? chunk : decoder.decode(chunk, { stream: true });
  return text + decoder.decode();
}

async function partsOf(io: Io, text: string | undefined, options: SendOptions): Promise<readonly Part[]> {
  const words = text === "-" ? (await readAll(io.stdin)).trimEnd() : text;
  const parts: Part[] = words === undefined || words === "" ? [] : [{ text: words }];
  for (const file of options.file ?? []) parts.push(await filePart(file, io.cwd));
  if (parts.length === 0) throw new UsageError("there is nothing to send: give a TEXT, or a --file");
  return parts;
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

export async function send(io: Io, url: string, text: string | undefined, options: SendOptions): Promise<number> {
  const parts = await partsOf(io, text, options);
  const client = await open(io, url, options);
  const accept = options.accept?.split(",").map((mode) => mode.trim());
  const request: SendMessageRequest = {
    message: {
      messageId: client.ids.next(),
      role: "ROLE_USER",
      parts,
      ...(options.context === undefined ? {} : { contextId: options.context }),
      ...(options.task === undefined ? {} : { taskId: options.task }),
    },
    configuration: {
      ...(accept === undefined ? {} : { acceptedOutputModes: accept }),
      ...(options.wait ? {} : { returnImmediately: true }),
    },
  };
  const streams = options.stream && options.wait && client.card.capabilities.streaming === true;
  return follow(
    io,
    (signal) =>
      streams ? client.sendStreamingMessage(request, { signal }) : answer(client, request, options.wait, signal),
    {
      hints: hintsFor(url, options),
      options,
      known: streams && options.task !== undefined,
      mayEndEarly: !options.wait,
    },
  );
}
