import type { Part } from "@parley/a2a/internal/model/index";
import { open, type CallOptions } from "../connection.ts";
import { dataPart, readAll } from "../data.ts";
import { UsageError } from "../errors.ts";
import { filePart } from "../files.ts";
import { fileFetchOf } from "../file-fetch.ts";
import { follow, type FollowOptions, type Start } from "../follow.ts";
import { hintsFor } from "../hints.ts";
import type { Io } from "../io.ts";
import { callOptions, data, file, resultOptions, url, type Program } from "../options.ts";
import { sending, type Said } from "../sending.ts";

export function addSend({ io, command, finish }: Program): void {
  const sendCommand = callOptions(
    command("send", {
      summary: "Send a message and show the answer",
      description:
        "The answer goes to standard output while it grows, progress to standard error. Exits with 1 if the task fails, is rejected or is canceled.",
      examples: [
        'parley send http://localhost:4000 "Hello"',
        'parley send http://localhost:4000 "chart temp_max by month" --file weather.csv --out charts',
        "parley send http://localhost:4000 --data form.json",
        'echo "Hello" | parley send http://localhost:4000 -',
        'parley send http://localhost:4000 "Hello" --json',
        'parley send http://localhost:4000 "Hello" --no-wait',
      ],
    })
      .argument(...url)
      .argument("[text]", "text of the message; - reads it from standard input")
      .option(...file)
      .option(...data)
      .option("--context <id>", "id of the conversation that the message belongs to")
      .option("--task <id>", "id of the task that the message continues")
      .option("--accept <modes>", "media types to accept in the answer, separated by commas")
      .option("--no-stream", "wait for one answer, not for a stream")
      .option("--wait", "wait until the task ends or needs input", true)
      .option("--no-wait", "return as soon as the task has started"),
  );
  resultOptions(sendCommand).action(async (at: string, text: string | undefined, options: SendOptions) =>
    finish(await send(io, at, text, options)),
  );
}

interface SendOptions extends CallOptions, FollowOptions {
  readonly file?: readonly string[];
  readonly data?: readonly string[];
  readonly context?: string;
  readonly task?: string;
  readonly accept?: string;
  readonly stream: boolean;
  readonly wait: boolean;
}

/** The parts of a message: its text, or that of standard input for `-`, files, and data. */
export async function partsOf(
  io: Io,
  text: string | undefined,
  options: Pick<SendOptions, "file" | "data">,
): Promise<readonly Part[]> {
  const { file = [], data = [] } = options;
  if ([text, ...data].filter((value) => value === "-").length > 1)
    throw new UsageError("standard input can be read once: give - for [text] or for one --data <json>");
  const words = text === "-" ? (await readAll(io.stdin)).trimEnd() : text;
  const parts: Part[] = words === undefined || words === "" ? [] : [{ text: words }];
  for (const value of file) parts.push(await filePart(value, io.cwd));
  for (const value of data) parts.push(await dataPart(value, io));
  if (parts.length === 0) throw new UsageError("there is nothing to send: give [text], --file <file> or --data <json>");
  return parts;
}

async function send(io: Io, at: string, text: string | undefined, options: SendOptions): Promise<number> {
  const parts = await partsOf(io, text, options);
  const client = await open(io, at, options);
  const accept = options.accept?.split(",").map((mode) => mode.trim());
  const configuration = {
    ...(accept === undefined ? {} : { acceptedOutputModes: accept }),
    ...(options.wait ? {} : { returnImmediately: true }),
  };
  const streams = options.stream && options.wait && client.card.capabilities.streaming === true;
  const saying = (said: Said): Start => sending(client, said, { streams, wait: options.wait, configuration });
  // Who gave the message by standard input has no terminal left to answer with.
  const asks =
    io.interactive && options.json !== true && options.wait && ![text, ...(options.data ?? [])].includes("-");
  const start = saying({
    parts,
    ...(options.context === undefined ? {} : { contextId: options.context }),
    ...(options.task === undefined ? {} : { taskId: options.task }),
  });
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
