import { wellFormed } from "@parley/a2a/internal/base/json-text";
import { safeFileName } from "@parley/a2a/internal/files/content";
import type { BodyWriter, ByteBudget, UniversalRequest, UniversalResponse } from "@parley/a2a/internal/protocol/index";
import type { Seal } from "../seal/index.ts";
import type { BlobContent, BlobRange, BlobStore } from "./port.ts";
import type { BlobAbout } from "./ref.ts";
import { dispositionOf } from "./s3.ts";
import { storedJson } from "@parley/a2a/internal/base/json";

/*
 * Links of the server to blobs. Their content is sealed, so it does not reveal the key of a blob, and cannot be changed. A link is a
 * capability: until it expires, its holder can read the file without credentials.
 */

/** The content of a link. */
interface Said extends BlobAbout {
  readonly key: string;
  /** In milliseconds since the Unix epoch. */
  readonly expires: number;
}

const saidJson = storedJson<Said>();

/** Binds links to their purpose, so that no other sealed text is accepted as a link. */
const purpose = ["a link to a file"];
const parameter = "link";

/** The file name and media type for the link, if they are valid. */
export function aboutOf({ filename, mediaType }: BlobAbout): BlobAbout {
  const isType = typeof mediaType === "string" && /^[\w.+-]{1,100}\/[\w.+-]{1,100}$/.test(mediaType);
  return {
    ...(typeof filename === "string" && filename !== "" && { filename: safeFileName(wellFormed(filename)) }),
    ...(isType && { mediaType }),
  };
}

/** `url`: the address of the endpoint. */
export async function linkTo(url: string, seal: Seal, said: Said): Promise<string> {
  return `${url}?${parameter}=${encodeURIComponent(await seal.seal(said, purpose))}`;
}

const plain = { "content-type": "text/plain; charset=utf-8", "cache-control": "no-store" } as const;

interface LinkDeps {
  readonly store: BlobStore;
  readonly seal: Seal;
  /** Milliseconds since the Unix epoch. */
  readonly now: number;
  /** The memory that readers may hold. */
  readonly answers: ByteBudget;
}

/** Memory for each reader of a link, in bytes: one piece that is being read, and one that is being sent. */
const readerBytes = 128 << 10;

export async function answerLink(
  request: UniversalRequest,
  { store, seal, now, answers }: LinkDeps,
): Promise<UniversalResponse> {
  if (request.method !== "GET" && request.method !== "HEAD") {
    return { status: 405, headers: { ...plain, allow: "GET, HEAD" }, body: "Use GET to read files" };
  }
  const said = await opened(request.url, seal);
  if (said === undefined) return { status: 404, headers: plain, body: "There is no file at this link" };
  if (said.expires <= now) {
    return { status: 410, headers: plain, body: "This link has expired: ask the agent for the task again" };
  }
  const range = rangeOf(request.header("range"));
  const owner = said.key.split("/", 2).join("/");
  if (request.method === "HEAD") return answered(await contentOf(store, said.key, range), said, now, () => undefined);
  try {
    await answers.take(owner, readerBytes);
  } catch {
    return { status: 503, headers: { ...plain, "retry-after": "5" }, body: "The server is busy with other files" };
  }
  let isRead = false;
  try {
    return answered(await contentOf(store, said.key, range), said, now, (body) => {
      isRead = true;
      return writing(body, answers, owner);
    });
  } finally {
    if (!isRead) answers.give(owner, readerBytes);
  }
}

interface Found extends BlobContent {
  readonly range: { readonly start: number; readonly end: number } | undefined;
  /** The range begins beyond the end. */
  readonly beyond?: true;
}

async function contentOf(store: BlobStore, key: string, range: WantedRange | undefined): Promise<Found | undefined> {
  if (range === undefined) {
    const whole = await store.get(key);
    return whole && { ...whole, range: undefined };
  }
  let wanted: BlobRange;
  if (range.start === undefined) {
    // A suffix range: get the size first.
    const some = await store.get(key, { start: 0, end: 0 });
    if (some === undefined) return undefined;
    await some.body[Symbol.asyncIterator]().return?.();
    wanted = { start: Math.max(0, some.size - range.last) };
  } else {
    wanted = range.end === undefined ? { start: range.start } : { start: range.start, end: range.end };
  }
  const found = await store.get(key, wanted);
  if (found === undefined) return undefined;
  if (wanted.start >= found.size) return { ...found, range: undefined, beyond: true };
  return { ...found, range: { start: wanted.start, end: Math.min(wanted.end ?? Infinity, found.size - 1) } };
}

/** `writer`: writes the body; `undefined`: no body. */
function answered(
  found: Found | undefined,
  said: Said,
  now: number,
  writer: (body: BlobContent["body"]) => BodyWriter | undefined,
): UniversalResponse {
  if (found === undefined) return { status: 404, headers: plain, body: "The file was deleted" };
  const { size, body, range, beyond } = found;
  const close = async (): Promise<void> => void (await body[Symbol.asyncIterator]().return?.());
  if (beyond === true) {
    const headers = { ...plain, "content-range": `bytes */${size}` };
    return { status: 416, headers, body: closing(close) };
  }
  const length = range === undefined ? size : range.end - range.start + 1;
  const headers = {
    "content-type": said.mediaType ?? "application/octet-stream",
    "content-length": String(length),
    "content-disposition": dispositionOf(said.filename),
    "accept-ranges": "bytes",
    ...(range !== undefined && { "content-range": `bytes ${range.start}-${range.end}/${size}` }),
    // Name, type and content are untrusted, so browsers must not run the file or sniff another type.
    "x-content-type-options": "nosniff",
    "content-security-policy": "sandbox; default-src 'none'",
    "referrer-policy": "no-referrer",
    "cache-control": `private, max-age=${Math.max(0, Math.floor((said.expires - now) / 1000))}, immutable`,
  };
  const status = range === undefined ? 200 : 206;
  return { status, headers, body: writer(body) ?? closing(close) };
}

/** Sends no body, and closes the source. */
function closing(close: () => Promise<void>): BodyWriter {
  return () => close();
}

/** Reserves memory before reading, and ends slow readers if others need it. A client with a link could open many connections without reading. */
function writing(body: BlobContent["body"], answers: ByteBudget, owner: string): BodyWriter {
  return async (sink) => {
    const pieces = body[Symbol.asyncIterator]();
    try {
      for (let next = await pieces.next(); next.done !== true && !sink.closed; next = await pieces.next()) {
        if (!sink.write(next.value)) await answers.awaitReader(sink.ready());
      }
    } finally {
      answers.give(owner, readerBytes);
      await pieces.return?.();
    }
  };
}

async function opened(url: string, seal: Seal): Promise<Said | undefined> {
  const token = new URLSearchParams(url.split("?", 2)[1]).get(parameter);
  if (token === null || token.length > 8192) return undefined;
  return seal.open(token, purpose, saidJson).catch(() => undefined);
}

/** A range from a first byte, or a suffix of some length. */
type WantedRange =
  | { readonly start: number; readonly end: number | undefined }
  | { readonly start: undefined; readonly last: number };

/** A single range of bytes (RFC 9110 §14.1.2). Any other header is ignored, as the RFC allows. */
function rangeOf(header: string | undefined): WantedRange | undefined {
  const [, first, last] = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(header?.trim() ?? "") ?? [];
  if (first === undefined || last === undefined || first + last === "") return undefined;
  if (first === "") return { start: undefined, last: Number(last) };
  const end = last === "" ? undefined : Number(last);
  return end !== undefined && end < Number(first) ? undefined : { start: Number(first), end };
}
