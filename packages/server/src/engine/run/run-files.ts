import type { BlobQuota, Blobs } from "../../blobs/blobs.ts";
import type { LazyBlobs } from "../../blobs/lazy.ts";
import { blobScheme, keysIn, refOf, unreadable } from "../../blobs/ref.ts";
import { invalidParams, type Message, type NewRecord, type Part } from "@parley/a2a/internal/model/index";
import type {
  AgentEvent,
  ArtifactEvent,
  IncomingFilesByUrl,
  StatusEvent,
  TurnFiles,
} from "@parley/a2a/internal/protocol/index";
import type { FeatureEffect, TaskKey } from "../../store/index.ts";
import { agentMistake } from "../shared/mistakes.ts";

/** Maximum characters of base64 in a message that has no task to store its files, or that goes to another agent. */
const maxInline = 8 << 20;

interface RunFilesInit {
  /** Whether an earlier run was lost, which may have stored the same files. */
  readonly resumes: () => boolean;
  /** Called for each stored piece, because the agent yields nothing while files are stored. */
  readonly onProgress: () => void;
}

/** Stores the large files of one run, before the records that refer to them. */
export class RunFiles implements TurnFiles {
  readonly inlineBytes: number;
  readonly #blobs: LazyBlobs;
  readonly #task: TaskKey;
  readonly #init: RunFilesInit;
  #opening: Promise<BlobQuota> | undefined;
  #quota: BlobQuota | undefined;

  constructor(blobs: LazyBlobs, task: TaskKey, init: RunFilesInit) {
    this.inlineBytes = blobs.inlineBytes;
    this.#blobs = blobs;
    this.#task = task;
    this.#init = init;
  }

  async store(
    bytes: AsyncIterable<Uint8Array>,
    about: Parameters<TurnFiles["store"]>[1],
  ): ReturnType<TurnFiles["store"]> {
    const [blobs, quota] = await this.#open();
    return blobs.store(this.#task, this.#watched(bytes), about, quota);
  }

  open(url: string): ReturnType<TurnFiles["open"]> {
    const ref = refOf(url);
    if (ref === undefined) return undefined;
    const [task, load] = [this.#task, () => this.#blobs.load()];
    async function* bytes(): AsyncGenerator<Uint8Array, void, void> {
      const blobs = await load();
      const owned = await blobs.owned(url, task);
      if (owned === undefined) throw agentMistake("the URL names a file of another owner");
      yield* blobs.read(owned);
    }
    return { size: ref.size, bytes };
  }

  /** Whether events have files that are, or should be, stored outside the task. The values may be invalid, because agents can yield anything. */
  has(events: readonly AgentEvent[]): boolean {
    const isOutside = (part: Part): boolean => isLarge(part, this.inlineBytes) || isReference(part);
    return events.some((event) => partsOf(event)?.some(isOutside) === true);
  }

  /** A message with the bytes of its files, within a total limit. Files beyond the limit lose their URL. */
  async inlined(message: Message): Promise<Message> {
    return { ...message, parts: await this.#inlined(message.parts, async () => unreadable) };
  }

  async sendable(parts: readonly Part[]): Promise<readonly Part[]> {
    if (!parts.some(isReference)) return parts;
    const blobs = await this.#blobs.load();
    return this.#inlined(parts, async (url) => {
      const ref = await blobs.owned(url, this.#task);
      return ref === undefined ? unreadable : blobs.link(ref);
    });
  }

  hasLinks(parts: readonly Part[]): boolean {
    const sizes = parts.map((part) => (isReference(part) ? (refOf(part.url)?.size ?? 0) : 0));
    return sizes.reduce((sum, size) => sum + 4 * Math.ceil(size / 3), 0) > maxInline;
  }

  /** `otherwise`: the URL for a file that is too large, or that cannot be read. */
  async #inlined(given: readonly Part[], otherwise: (url: string) => Promise<string>): Promise<readonly Part[]> {
    const blobs = await this.#blobs.load();
    const parts: Part[] = [];
    let left = maxInline;
    for (const part of given) {
      if (!isReference(part)) {
        parts.push(part);
        continue;
      }
      const { url, ...rest } = part;
      const raw = await blobs.base64Of(url, this.#task, left);
      left -= raw?.length ?? 0;
      parts.push(raw === undefined ? { ...rest, url: await otherwise(url) } : { ...rest, raw });
    }
    return parts;
  }

  /** The rows of the blobs that the record is the first to refer to. */
  rowsOf({ json }: NewRecord): readonly FeatureEffect[] {
    const rows = this.#quota?.rows;
    if (rows === undefined || rows.size === 0) return [];
    return keysIn(json).flatMap((key) => {
      const row = rows.get(key);
      rows.delete(key);
      return row ?? [];
    });
  }

  async stored(events: readonly AgentEvent[]): Promise<readonly AgentEvent[]> {
    const [blobs, quota] = await this.#open();
    const stored: AgentEvent[] = [];
    for (const event of events) stored.push(await this.#storedIn(event, blobs, quota));
    return stored;
  }

  async #storedIn(event: AgentEvent, blobs: Blobs, quota: BlobQuota): Promise<AgentEvent> {
    const given = partsOf(event);
    if (given === undefined) return event;
    this.#init.onProgress();
    const parts = await blobs.storeParts(this.#task, given, quota);
    const kept: Part[] = [];
    for (const part of parts) {
      kept.push(isReference(part) ? { ...part, url: await blobs.keep(this.#task, part.url, part, quota) } : part);
    }
    return withParts(event, kept);
  }

  async #open(): Promise<readonly [Blobs, BlobQuota]> {
    const blobs = await this.#blobs.load();
    const opening = (this.#opening ??= blobs.quotaOf(this.#task, "agent", this.#init.resumes()));
    opening.catch(() => (this.#opening = undefined));
    const quota = (this.#quota = await opening);
    quota.onWait = this.#init.onProgress;
    return [blobs, quota];
  }

  async *#watched(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void, void> {
    for await (const piece of bytes) {
      this.#init.onProgress();
      yield piece;
    }
  }
}

/** The parts of an event that becomes a record. A direct reply has no task that could keep its files. */
function partsOf(event: AgentEvent | null | undefined): readonly Part[] | undefined {
  const own = event?.kind === "delegated" ? event.event : event;
  const parts: unknown =
    own?.kind === "artifact" ? own.artifact?.parts : own?.kind === "status" ? own.message?.parts : undefined;
  return areParts(parts) ? parts : undefined;
}

function areParts(parts: unknown): parts is readonly Part[] {
  return Array.isArray(parts) && parts.every((part) => typeof part === "object" && part !== null);
}

/** Base64 encodes three bytes as four characters. */
function isLarge({ raw }: Part, bytes: number): boolean {
  return typeof raw === "string" && raw.length > 4 * Math.ceil(bytes / 3);
}

/** Whether a part names a file that is stored outside the task. */
export function isReference(part: Part): part is Part & { readonly url: string } {
  return typeof part.url === "string" && part.url.startsWith(blobScheme);
}

function withParts(event: AgentEvent, parts: readonly Part[]): AgentEvent {
  if (event.kind === "artifact" || event.kind === "status") return withContent(event, parts);
  if (event.kind !== "delegated" || event.event === undefined) return event;
  return { ...event, event: withContent(event.event, parts) };
}

function withContent(event: ArtifactEvent | StatusEvent, parts: readonly Part[]): ArtifactEvent | StatusEvent {
  if (event.kind === "artifact") return { ...event, artifact: { ...event.artifact, parts } };
  return event.message ? { ...event, message: { ...event.message, parts } } : event;
}

/**
 * @param incoming - Files that the server stored while it read the message.
 * @throws A2AError `InvalidParams` for a part whose URL only the server may write.
 */
export function checkAddresses({ parts }: Message, incoming?: IncomingFilesByUrl): void {
  const fields = parts.flatMap(({ url }, at) =>
    url?.startsWith(blobScheme) === true && incoming?.has(url) !== true
      ? [{ field: `message.parts[${at}].url`, description: "must not have a scheme of the server" }]
      : [],
  );
  if (fields.length > 0) throw invalidParams(fields);
}

export function hasLarge({ parts }: Message, inlineBytes: number): boolean {
  return parts.some((part) => isLarge(part, inlineBytes));
}
