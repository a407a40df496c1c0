import { fromBase64Url, sha256, toBase64Url } from "@parley/a2a/internal/base/bytes";
import type { Bytes } from "@parley/a2a/internal/base/index";
import { A2AError, toBase64, type Part } from "@parley/a2a/internal/model/index";
import type { FeatureEffect } from "../store/index.ts";
import { type BlobStore, isBlobKey } from "./port.ts";
import { storedJson, type StoredJson } from "@parley/a2a/internal/base/json";

/* References to blobs in the log of a task: a part whose URL has a scheme that never leaves the server. */

/** The scheme of a reference to a blob. */
export const blobScheme = "parley-blob:";

/** Replaces a reference that its reader may not follow, or whose file is missing. */
export const unreadable = "about:blank#unavailable";

/** A reference in JSON text: the name of the member, and the rest of the URL. Within a string its quotes would be escaped. */
const inText = /"(url|uri|fileWithUri)":"parley-blob:([^"\\]*)"/g;

/** The agent in the keys of files of messages whose agent is unknown yet. No agent has this id. */
export const unknownAgent = "~~incoming";

export interface BlobOwner {
  readonly agent: string;
  readonly owner: string;
}

export interface BlobRef {
  /** A hash of the bytes, for deduplication. It does not protect against tampering. */
  readonly hash: string;
  /** Size in bytes. */
  readonly size: number;
  readonly key: string;
  /** For its link. */
  readonly about: BlobAbout;
}

/** Name and type of a file, for its link. */
export interface BlobAbout {
  readonly filename?: string;
  readonly mediaType?: string;
}

/** The URL of a reference. It needs no escaping in JSON. */
export function refUrl({ hash, size, key, about }: BlobRef): string {
  const said = toBase64Url(new TextEncoder().encode(JSON.stringify(about)));
  return `${blobScheme}${hash}.${size}/${key}:${said}`;
}

/** The part with the URL of its file instead of the content. */
export function fileAt(url: string, part: Part): Part {
  const { text: _t, raw: _r, url: _u, data: _d, ...about } = part;
  return { ...about, url };
}

/** The reference of a URL; `undefined`: not one. */
export function refOf(url: string | undefined): BlobRef | undefined {
  const [, hash, size, key, said] = whole.exec(url ?? "") ?? [];
  if (hash === undefined || size === undefined || key === undefined || said === undefined) return undefined;
  const about = placeOf(key) === undefined ? undefined : aboutOf(said);
  return about && { hash, size: Number(size), key, about };
}

const whole = /^parley-blob:([\w-]{1,64})\.(\d{1,15})\/([\w~/-]{1,800}):([\w-]{1,1000})$/;

function aboutOf(said: string): BlobAbout | undefined {
  try {
    const about = JSON.parse(textOf(`~${said}`) ?? "") as BlobAbout | null;
    return typeof about === "object" ? (about ?? undefined) : undefined;
  } catch {
    return undefined;
  }
}

/** Whether a text can have references. */
export function mayHaveRefs(text: string): boolean {
  return text.includes(`":"${blobScheme}`);
}

/** A reference in a text, with its context. */
export interface FoundRef {
  /** The text before it, from the end of the previous reference. */
  readonly before: string;
  /** The name of its member: `url`, or its name in another version. */
  readonly member: string;
  readonly url: string;
}

/** The references in a text, in order, and the text after the last one. */
export function splitRefs(text: string): { readonly refs: readonly FoundRef[]; readonly rest: string } {
  const refs: FoundRef[] = [];
  let at = 0;
  for (const { 0: found, 1: member = "", 2: rest = "", index } of text.matchAll(inText)) {
    refs.push({ before: text.slice(at, index), member, url: blobScheme + rest });
    at = index + found.length;
  }
  return { refs, rest: text.slice(at) };
}

/** The text without the keys of its blobs, because the same bytes get another key when they are stored again. */
export function withoutKeys(text: string): string {
  return mayHaveRefs(text) ? text.replace(/":"(parley-blob:[\w-]+\.\d+)\/[\w~/-]+:/g, '":"$1:') : text;
}

/** The prefix of the keys of all blobs of an agent, of one of its owners, or of a task. */
export async function prefixOf(agent: string, owner?: string, taskId?: string): Promise<string> {
  const parts = [segment(agent)];
  if (owner !== undefined) parts.push(await ownerSegment(owner));
  if (owner !== undefined && taskId !== undefined) parts.push(segment(taskId));
  return `${parts.join("/")}/`;
}

/** The parsed key. `undefined` if no server has created it. */
export function placeOf(
  key: string,
): { readonly agent: string; readonly taskId: string; readonly id: string } | undefined {
  const [, agent, task, id] = made.exec(key) ?? [];
  if (agent === undefined || task === undefined || id === undefined || !isBlobKey(key)) return undefined;
  const [first, third] = [textOf(agent), textOf(task)];
  return first === undefined || third === undefined ? undefined : { agent: first, taskId: third, id };
}

/** Agent, 24 bytes of a hash of the owner, task, and an id of 18 bytes. */
const made = /^([^/]+)\/[\w-]{32}\/([^/]+)\/([\w-]{24})$/;

function isSafe(name: string): boolean {
  return name.length <= 120 && /^[A-Za-z0-9_-]+$/.test(name);
}

/** A name as a segment of a key. A name with other characters is in base64url, after a tilde. */
function segment(name: string): string {
  return isSafe(name) ? name : `~${toBase64Url(new TextEncoder().encode(name))}`;
}

function textOf(part: string): string | undefined {
  if (!part.startsWith("~")) return part;
  const bytes = fromBase64Url(part.slice(1));
  return bytes && new TextDecoder().decode(bytes);
}

/** Owners can be long, and must stay secret from users who can list the bucket. */
async function ownerSegment(owner: string): Promise<string> {
  return toBase64Url((await sha256(owner)).subarray(0, 24));
}

/** A random id, which cannot be guessed. */
export function blobId(): string {
  return toBase64Url(crypto.getRandomValues(new Uint8Array(18)));
}

/** The rows that name the blobs of a task. Each is stored with the first record that refers to its blob, and deleted with the task. */
export const blobFeature = "blob";

/** The value of a row. Its key is the id of the blob. */
interface BlobRow {
  readonly bytes: number;
  readonly hash: string;
}

export const blobRowJson: StoredJson<BlobRow> = storedJson();

export function rowOf({ key, size, hash }: Pick<BlobRef, "key" | "size" | "hash">): FeatureEffect {
  const value = blobRowJson.write({ bytes: size, hash });
  return { effect: "feature", op: "set", feature: blobFeature, key: idOf(key), value };
}

/** The last segment of a key. */
export function idOf(key: string): string {
  return key.slice(key.lastIndexOf("/") + 1);
}

/** The keys of the blobs that a text refers to. The text is untrusted. */
export function keysIn(json: string): readonly string[] {
  return mayHaveRefs(json) ? splitRefs(json).refs.flatMap(({ url }) => refOf(url)?.key ?? []) : [];
}

/** Reads referenced files. */
export class BlobReader {
  readonly #store: BlobStore;

  constructor(store: BlobStore) {
    this.#store = store;
  }

  /** The reference of a URL, if the owner may read it. The URL is untrusted. */
  async owned(url: string, { agent, owner }: BlobOwner): Promise<BlobRef | undefined> {
    const ref = refOf(url);
    return ref?.key.startsWith(await prefixOf(agent, owner)) === true ? ref : undefined;
  }

  async *read(ref: BlobRef): AsyncGenerator<Bytes, void, void> {
    const body = await this.open(ref);
    if (body === undefined) throw new A2AError("Unavailable", "A file of the task is missing from the blob store");
    yield* body;
  }

  /** The bytes of a file. `undefined`: it is missing. */
  async open({ key }: BlobRef): Promise<AsyncIterable<Bytes> | undefined> {
    return (await this.#store.get(key))?.body;
  }

  /** A file of an owner as base64. `undefined`: it exceeds `most` characters, is missing, or has another owner. */
  async base64Of(url: string, owner: BlobOwner, most: number): Promise<string | undefined> {
    const ref = await this.owned(url, owner);
    const found = ref && 4 * Math.ceil(ref.size / 3) <= most ? await this.#store.get(ref.key) : undefined;
    if (found === undefined) return undefined;
    let text = "";
    // The size in a reference is untrusted.
    if (4 * Math.ceil(found.size / 3) > most) await found.body[Symbol.asyncIterator]().return?.();
    else for await (const piece of this.base64(found.body)) text += piece;
    return text === "" ? undefined : text;
  }

  /** In pieces. */
  async *base64(bytes: AsyncIterable<Bytes>): AsyncGenerator<string, void, void> {
    let left: Bytes = new Uint8Array(0);
    for await (const piece of bytes) {
      const all = left.length === 0 ? piece : joined(left, piece);
      const whole = all.length - (all.length % 3);
      if (whole > 0) yield toBase64(all.subarray(0, whole));
      left = all.slice(whole);
    }
    if (left.length > 0) yield toBase64(left);
  }
}

function joined(one: Bytes, other: Bytes): Bytes {
  const both = new Uint8Array(one.length + other.length);
  both.set(one);
  both.set(other, one.length);
  return both;
}
