import { BoundedMap, memoryOf } from "@parley/a2a/internal/base/bounded-map";
import { wrapped } from "@parley/a2a/internal/base/json-text";
import { contentHash, invalidParams, type Message } from "@parley/a2a/internal/model/index";
import type { OnceEffect, OnceRecord, Owner } from "../../store/index.ts";
import { TextPayload, type IncomingFilesByUrl } from "@parley/a2a/internal/protocol/index";
import { ChurnMap } from "../shared/collections.ts";
import { taskNotFound } from "../shared/errors.ts";
import { replyWindow, type EngineSettings } from "../shared/settings.ts";
import { answered, joined, type Accepted, type Admission, type Attempt } from "./admission.ts";

interface RememberedReply {
  readonly hash: string;
  /** On the monotonic clock. */
  readonly until: number;
  /** JSON of the message: one object for the garbage collector, where the message is ten (docs/decisions/hot-path.md). */
  readonly json: string;
}

/**
 * Recognizes a message that was sent before, so that a retry gets the answer of the first attempt. Attempts that are under
 * way are known here, and direct replies that are kept in memory. Everything else is known to the store.
 */
export class Retries {
  readonly #settings: EngineSettings;
  readonly #underWay = new ChurnMap<string, Attempt>();
  readonly #replies: BoundedMap<RememberedReply>;

  constructor(settings: EngineSettings) {
    this.#settings = settings;
    const { replies, replyBytes } = settings.dedupe;
    this.#replies = new BoundedMap({
      bytes: replyBytes,
      entries: replies,
      bytesOf: (name, { json }) => memoryOf(name, json),
    });
  }

  /**
   * Begins an attempt to send a message, which later retries join. Where this process knows the answer, or will know it,
   * the attempt has the `admission` of the earlier one. `active`: the extensions of the call. `files`: those that were stored while it was read. `undefined` where deduplication is off. Throws for other content
   * under the same key.
   */
  begin(
    owner: Owner,
    message: Message,
    active: readonly string[],
    files: IncomingFilesByUrl | undefined,
  ): Attempt | undefined {
    const { dedupe, clock, store, extensions, blobs } = this.#settings;
    if (!dedupe.on) return undefined;
    const { window } = dedupe;
    const hash = contentHash(
      extensions.contentOf(message, active),
      blobs === undefined ? undefined : (files ?? noFiles),
    );
    const key = keyOf(message, dedupe.onConflict === "accept" ? hash : "");
    const now = clock.now();
    const once: OnceEffect =
      window === undefined
        ? { effect: "once", key, hash, now }
        : { effect: "once", key, hash, now, until: now + window };
    // No id contains NUL.
    const name = `${owner.agent}\0${owner.owner}\0${key}`;
    const known = this.#find(name, once);
    if (known !== undefined) return { once, name, found: undefined, admission: known };
    const attempt: Attempt = { once, name, found: store.once(owner, key, now), admission: undefined };
    this.#underWay.set(name, attempt);
    return attempt;
  }

  /** The result of the same message, as far as this process knows it. */
  #find(name: string, once: OnceEffect): Admission | Promise<Admission> | undefined {
    const before = this.#underWay.get(name);
    if (before?.admission !== undefined) {
      checkContent(before.once, once);
      return before.admission;
    }
    const reply = this.#replies.get(name);
    if (reply === undefined || reply.until <= this.#settings.clock.elapsed()) return undefined;
    checkContent(reply, once);
    return answered(repeated(reply.json));
  }

  /** Ends an attempt. From now on a retry finds the result in the store, or a direct reply in memory. */
  end(attempt: Attempt | undefined, reply?: string): void {
    if (attempt === undefined) return;
    const { name, once } = attempt;
    if (this.#underWay.get(name) === attempt) this.#underWay.delete(name);
    // A reply that is in the store is found there, by its key.
    if (reply === undefined || this.#settings.conversations === "store") return;
    // A whole number needs no object of its own.
    const until = Math.ceil(this.#settings.clock.elapsed() + replyWindow(this.#settings));
    this.#replies.set(name, { hash: once.hash, until, json: reply });
  }

  /** Forgets the direct replies to an owner. */
  forget({ agent, owner }: Owner): void {
    this.#replies.drop(`${agent}\0${owner}\0`);
  }

  /** The result that the store has of the same message. Rejects for other content under the same key. */
  async join(owner: Owner, found: OnceRecord, attempt: Attempt | undefined): Promise<Accepted> {
    if (attempt !== undefined) checkContent(found, attempt.once);
    if (found.answer !== undefined) return repeated(found.answer);
    const taskId = found.taskId ?? "";
    const head = await this.#settings.store.head(owner, taskId);
    if (head === undefined) throw taskNotFound(taskId);
    return joined(head, beganTask(found) ? 1 : found.seq);
  }
}

const noFiles: IncomingFilesByUrl = new Map();

/** A direct reply that was given before. */
function repeated(json: string): Accepted {
  return { kind: "message", reply: new TextPayload(wrapped("message", json)) };
}

/**
 * The key of a message among those of its owner: its id and its task. Where other content under a used id is a new message,
 * `hash` is part of the key, so that a retry of each of them finds its own first attempt.
 */
function keyOf({ taskId = "", messageId }: Message, hash: string): string {
  return `${taskId.length}:${taskId}${messageId}${hash}`;
}

/** Whether the message of a key had no task, and so created one. */
function beganTask({ key }: OnceRecord): boolean {
  return key.startsWith("0:");
}

/** Refuses other content under a used id. With `onConflict: "accept"` such messages have different keys. */
function checkContent(known: { readonly hash: string }, { hash }: OnceEffect): void {
  if (known.hash === hash) return;
  const description = "was used before, for a message with other content";
  throw invalidParams([{ field: "message.messageId", description }], "This messageId is taken");
}
