import { BoundedMap, memoryOf } from "@parley/a2a/internal/base/bounded-map";
import { wrapped } from "@parley/a2a/internal/base/json-text";
import {
  A2AError,
  contentHash,
  invalidParams,
  type Message,
  type NewRecord,
  type SendMessageRequest,
} from "@parley/a2a/internal/model/index";
import {
  TextPayload,
  type ByteBudget,
  type CallContext,
  type IncomingFilesByUrl,
  type Payload,
  type Principal,
} from "@parley/a2a/internal/protocol/index";
import type { TakenAnswer } from "../../intask/index.ts";
import type { LazyConfigs, PushConfigs } from "../../push/index.ts";
import type { FeatureEffect, OnceEffect, OnceRecord, Owner, TaskHead, TaskKey } from "../../store/index.ts";
import { storedPrincipal, type Committer, type LiveLogs, type StoredCall } from "../log/index.ts";
import { ChurnMap } from "../shared/collections.ts";
import { taskNotFound } from "../shared/errors.ts";
import { replyWindow, type EngineSettings } from "../shared/settings.ts";
import type { Queue, QueuePlaces, Runs, Standing } from "../supervise/index.ts";
import type { CheckedAgent } from "./checks.ts";

export interface SendDeps {
  readonly settings: EngineSettings;
  readonly committer: Committer;
  readonly liveLogs: LiveLogs;
  readonly budget: ByteBudget;
  readonly runs: Pick<Runs, "enter" | "leave" | "start" | "reserve" | "release" | "stopping" | "beforeStart">;
  readonly queue: Pick<Queue, "isCrowdedFor" | "freed">;
  readonly standing: Pick<Standing, "isRead" | "poll">;
  readonly places: Pick<QueuePlaces, "enter" | "putBack">;
  readonly configs: LazyConfigs | undefined;
}

/** An attempt to send a message, under the message's idempotency key, until the message is answered or stored. */
export interface Attempt {
  /** The effect that stores the key with the task or the answer, so that a later retry is recognized. */
  readonly once: OnceEffect;
  /** The key, unique across all agents and owners. */
  readonly name: string;
  /** The store's record of an earlier attempt with the same message. */
  readonly found: OnceRecord | undefined | Promise<OnceRecord | undefined>;
  /** The admission, which retries join. `undefined` until the message is accepted. */
  admission: Admission | Promise<Admission> | undefined;
}

/** A checked message on its way to the agent. */
export interface Send {
  readonly hosted: CheckedAgent;
  readonly owner: Owner;
  readonly request: SendMessageRequest;
  readonly call: StoredCall;
  readonly principal: Principal;
  /** The headers that the agent declares, if any. */
  readonly headers: Readonly<Record<string, string>> | undefined;
  /** The attempt. `undefined` if deduplication is off. */
  readonly attempt: Attempt | undefined;
  /** Rows to store with the task: the rows of extensions, and the webhook that the message requests. */
  readonly kept: readonly FeatureEffect[];
  /** Calls the extensions' `onAccept` again after rows of the task have changed that `onAccept` had read. */
  readonly again?: () => Promise<Send>;
  /** The id for the task that the message may create. Set if its files are stored under that id already. */
  readonly newTaskId?: string;
  /** The large files of the message that were stored while the message was read. */
  readonly incoming?: IncomingFilesByUrl | undefined;
  /** The message's answer to an authorization request of its task: a credential or a rejection. */
  readonly answer?: TakenAnswer | undefined;
}

/** The field of the webhook in a send, for errors. */
export const webhookPath = "configuration.taskPushNotificationConfig";

/** The result of a message: the agent answered the message directly, or the message is in the log of a task. */
export type Accepted =
  | { readonly kind: "message"; readonly reply: Payload<{ readonly message: Message }> }
  | {
      readonly kind: "task";
      readonly task: TaskKey;
      readonly contextId: string;
      /** `seq` of the message. */
      readonly input: number;
      /** All records of a task that was created and answered in one commit. The answer is built from these records without reading the store. */
      readonly log: readonly NewRecord[] | undefined;
      /** Whether this message created the task, so its whole log is new to the caller. */
      readonly made: boolean;
    };

/**
 * An accepted message. `answer` resolves once the message is answered or stored. It is wrapped in an object, because a
 * promise cannot resolve to another promise without waiting for the latter.
 */
export interface Admission {
  readonly answer: Promise<Accepted>;
}

/** The configs of webhooks. Rejects if the server has no webhooks, even if the card declares them. */
export async function configsOf({ configs }: Pick<SendDeps, "configs">): Promise<PushConfigs> {
  if (configs === undefined) throw new A2AError("PushNotificationNotSupported");
  return configs();
}

export function answered(accepted: Accepted): Admission {
  return { answer: Promise.resolve(accepted) };
}

/** A message that has the number `input` in the log of an existing task. */
export function joined({ task, contextId }: TaskHead, input: number): Accepted {
  return { kind: "task", task, contextId, input, log: undefined, made: false };
}

/**
 * The message with its context. Uses `Object.assign`, because on Node 20 `{ ...message, contextId }` costs eight times as
 * much, and makes the benchmark `message` 50 % slower (docs/decisions/hot-path.md).
 */
export function inContext(message: Message, contextId: string): Message {
  return Object.assign({}, message, { contextId });
}

const none: readonly string[] = [];

export function storedCall(
  { agent, reads }: CheckedAgent,
  { configuration, metadata }: SendMessageRequest,
  { principal, version, trace }: CallContext,
  extensions: readonly string[],
  headers: Send["headers"],
): StoredCall {
  const call: StoredCall = {
    principal: storedPrincipal(principal, agent.keepClaims ?? none),
    version,
    extensions,
    acceptedOutputModes: configuration?.acceptedOutputModes ?? none,
    metadata,
  };
  const traced = trace === undefined ? call : { ...call, trace };
  if (headers === undefined) return traced;
  const stored = new Set(reads.flatMap(({ name, store }) => (store ? [name] : [])));
  const kept = Object.entries(headers).filter(([name]) => stored.has(name));
  return kept.length === 0 ? traced : { ...traced, headers: Object.fromEntries(kept) };
}

interface RememberedReply {
  readonly hash: string;
  /** On the monotonic clock. */
  readonly until: number;
  /** The message as JSON: one object for the garbage collector instead of ten (docs/decisions/hot-path.md). */
  readonly json: string;
}

/**
 * Recognizes repeated messages, so that a retry gets the answer of the first attempt. Finds attempts in progress and direct
 * replies in memory. All other attempts are found in the store.
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
   * Begins an attempt to send a message, which later retries join. If this process has the answer of an earlier attempt, or
   * that attempt is in progress, the new attempt has its `admission`. Throws if the key was used with other content.
   *
   * @param active - The extensions of the call.
   * @param files - The files that were stored while the message was read.
   * @returns `undefined` if deduplication is off.
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

  /** The result of the same message, if this process knows it. */
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
    // A stored reply is found in the store by its key.
    if (reply === undefined || this.#settings.conversations === "store") return;
    // Small integers need no allocation.
    const until = Math.ceil(this.#settings.clock.elapsed() + replyWindow(this.#settings));
    this.#replies.set(name, { hash: once.hash, until, json: reply });
  }

  forget({ agent, owner }: Owner): void {
    this.#replies.drop(`${agent}\0${owner}\0`);
  }

  /** The stored result of the same message. Rejects if the key was used with other content. */
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

function repeated(json: string): Accepted {
  return { kind: "message", reply: new TextPayload(wrapped("message", json)) };
}

/**
 * The key of a message, unique within its owner: its id and its task. If `onConflict` is `accept`, messages with different
 * content share an id, so `hash` is part of the key, and each retry finds its own first attempt.
 */
function keyOf({ taskId = "", messageId }: Message, hash: string): string {
  return `${taskId.length}:${taskId}${messageId}${hash}`;
}

/** Whether the message of a key had no task id, and so created a task. */
function beganTask({ key }: OnceRecord): boolean {
  return key.startsWith("0:");
}

/** Rejects other content under a used id. With `onConflict: "accept"` such messages have different keys. */
function checkContent(known: { readonly hash: string }, { hash }: OnceEffect): void {
  if (known.hash === hash) return;
  const description = "was used before, for a message with other content";
  throw invalidParams([{ field: "message.messageId", description }], "This messageId is taken");
}
