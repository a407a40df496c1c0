import { BoundedMap } from "../../base/bounded-map.ts";
import { contentHash, invalidParams, type Message } from "../../model/index.ts";
import type { OnceEffect, OnceRecord, Owner } from "../../store/index.ts";
import { sizeOf } from "../bytes.ts";
import { ChurnMap } from "../churn-map.ts";
import { replyWindow, type EngineSettings } from "../options.ts";
import { taskNotFound } from "../refusals.ts";
import { answered, joined, type Accepted, type Admission, type Attempt } from "./admission.ts";

interface RememberedReply {
  readonly hash: string;
  /** Monotonic time. */
  readonly until: number;
  readonly message: Message;
  /** About what it takes in memory, with its key. */
  readonly bytes: number;
}

/**
 * Recognizes a message that was sent before, so that its retry gets the same answer and not a second one. What is under way
 * is known here, and so are direct replies that are kept in memory; the store knows everything else.
 */
export class Retries {
  readonly #settings: EngineSettings;
  readonly #underWay = new ChurnMap<string, Attempt>();
  readonly #replies: BoundedMap<RememberedReply>;

  constructor(settings: EngineSettings) {
    this.#settings = settings;
    const { replies, replyBytes } = settings.dedupe;
    this.#replies = new BoundedMap({ bytes: replyBytes, entries: replies, bytesOf: (_name, { bytes }) => bytes });
  }

  /** A message that comes in; `undefined` where deduplication is off. */
  attempt({ agent, owner }: Owner, message: Message): Attempt | undefined {
    const { dedupe, clock } = this.#settings;
    if (!dedupe.on) return undefined;
    const hash = contentHash(message);
    const key = keyOf(message, dedupe.onConflict === "accept" ? hash : "");
    const now = clock.now();
    const { window } = dedupe;
    const once: OnceEffect =
      window === undefined
        ? { effect: "once", key, hash, now }
        : { effect: "once", key, hash, now, until: now + window };
    // No id holds NUL.
    return { once, name: `${agent}\0${owner}\0${key}`, admission: undefined };
  }

  /** What the same message got, or is about to get, as far as this process knows. Throws for other content under its key. */
  find({ name, once }: Attempt): Admission | Promise<Admission> | undefined {
    const before = this.#underWay.get(name);
    if (before?.admission !== undefined) {
      checkContent(before.once, once);
      return before.admission;
    }
    const reply = this.#replies.get(name);
    if (reply === undefined || reply.until <= this.#settings.clock.elapsed()) return undefined;
    checkContent(reply, once);
    return answered({ kind: "message", message: reply.message });
  }

  /** From now on retries join this one. */
  begin(attempt: Attempt): void {
    this.#underWay.set(attempt.name, attempt);
  }

  /** It is known what became of the message: from now on the store tells, or the memory of direct replies. */
  end(attempt: Attempt | undefined, reply?: Message): void {
    if (attempt === undefined) return;
    const { name, once } = attempt;
    if (this.#underWay.get(name) === attempt) this.#underWay.delete(name);
    // What is in the store is found there, by its key.
    if (reply === undefined || this.#settings.conversations === "store") return;
    const until = this.#settings.clock.elapsed() + replyWindow(this.#settings);
    this.#replies.set(name, { hash: once.hash, until, message: reply, bytes: sizeOf(reply) + name.length });
  }

  /** The answer that the store knows of the same message. Rejects for other content under its key. */
  async join(owner: Owner, found: OnceRecord, attempt: Attempt | undefined): Promise<Accepted> {
    if (attempt !== undefined) checkContent(found, attempt.once);
    if (found.answer !== undefined) return { kind: "message", message: JSON.parse(found.answer) as Message };
    const taskId = found.taskId ?? "";
    const head = await this.#settings.store.head(owner, taskId);
    if (head === undefined) throw taskNotFound(taskId);
    return joined(head, beganTask(found) ? 1 : found.seq);
  }
}

/**
 * Names a message among those of its owner: by its id, and the task that it is for. Where other content under a used id is a
 * new message, by its content as well (`hash`), so that each of them joins its own first send.
 */
function keyOf({ taskId = "", messageId }: Message, hash: string): string {
  return `${taskId.length}:${taskId}${messageId}${hash}`;
}

/** Whether the message of a key was for no task, and so made one. */
function beganTask({ key }: OnceRecord): boolean {
  return key.startsWith("0:");
}

/** Refuses other content under a used id: only `onConflict: "refuse"` finds such a key. */
function checkContent(known: { readonly hash: string }, { hash }: OnceEffect): void {
  if (known.hash === hash) return;
  const description = "was used before, for a message with other content";
  throw invalidParams([{ field: "message.messageId", description }], "This messageId is taken");
}
