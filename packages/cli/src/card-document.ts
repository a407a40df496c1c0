import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import type { FetchLike } from "@parley/a2a/internal/client/index";
import { toA2AError } from "@parley/a2a/internal/model/index";
import { open, type CallOptions } from "./connection.ts";
import { UsageError } from "./errors.ts";
import { fileReason } from "./files.ts";
import type { Io } from "./io.ts";

/** A card as it was written: nothing is added, and nothing is left out. */
export interface CardDocument {
  readonly card: object;
  /** Where it was found. Absent: it is a file. */
  readonly address?: string;
}

/** Largest card in bytes, as for clients. */
const largest = 1 << 20;

/** Reads the card of an agent, of a file, or of standard input for `-`. */
export async function readCard(io: Io, at: string, options: CallOptions): Promise<CardDocument> {
  if (/^https?:\/\//i.test(at)) {
    if (!URL.canParse(at)) throw new UsageError(`<card> cannot be ${JSON.stringify(at)}: it is not a URL`);
    return fetchCard(io, at, options);
  }
  return { card: parse(await textOf(io, at), at) };
}

async function textOf(io: Io, at: string): Promise<string> {
  if (at !== "-") {
    try {
      return await readFile(resolve(io.cwd, at), "utf8");
    } catch (error) {
      throw new UsageError(`cannot read ${at}: ${fileReason(error)}`, { cause: error });
    }
  }
  const decoder = new TextDecoder();
  let text = "";
  for await (const chunk of io.stdin)
    text += typeof chunk === "string" ? chunk : decoder.decode(chunk, { stream: true });
  return text + decoder.decode();
}

/** Finds the card as every client does, and keeps what the server sent. */
async function fetchCard(io: Io, at: string, options: CallOptions): Promise<CardDocument> {
  let found: { readonly text: string; readonly url: string } | undefined;
  const recording: FetchLike = async (url, init) => {
    const response = await fetch(url, init);
    const body = await limited(response);
    if (response.status === 200 && body !== undefined) found = { text: new TextDecoder().decode(body), url };
    return body === undefined ? response : new Response(body, { status: response.status, headers: response.headers });
  };
  try {
    await open(io, at, options, { fetch: recording, retry: false });
  } catch (error) {
    // A card that a client cannot use is still a card. One that was found at the root of a host can be that of another agent.
    if (found === undefined || (error instanceof Error && isMissing(error))) throw error;
  }
  if (found === undefined) throw new UsageError(`${at} has no card`);
  return { card: parse(found.text, found.url), address: found.url };
}

function isMissing(error: Error): boolean {
  return toA2AError(error).metadata["httpStatus"] === "404";
}

/** The body of a response, up to the largest size of a card; `undefined` where it can have none. */
export async function limited(response: Response): Promise<Uint8Array<ArrayBuffer> | undefined> {
  if (response.body === null || response.status === 204 || response.status === 304) return undefined;
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response.body as AsyncIterable<Uint8Array>) {
    size += chunk.byteLength;
    if (size > largest) throw new UsageError(`the card at ${response.url} is larger than ${largest} bytes`);
    chunks.push(chunk);
  }
  return Uint8Array.from(Buffer.concat(chunks));
}

function parse(text: string, at: string): object {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return value;
  } catch {
    // Told below.
  }
  throw new UsageError(`${at} has no card: it is not a JSON object`);
}
