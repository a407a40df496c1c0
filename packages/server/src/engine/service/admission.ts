import { A2AError, type Message, type NewRecord, type SendMessageRequest } from "@parley/a2a/internal/model/index";
import type {
  ByteBudget,
  CallContext,
  IncomingFilesByUrl,
  Payload,
  Principal,
} from "@parley/a2a/internal/protocol/index";
import type { TakenAnswer } from "../../intask/index.ts";
import type { LazyConfigs, PushConfigs } from "../../push/index.ts";
import type { FeatureEffect, OnceEffect, OnceRecord, Owner, TaskHead, TaskKey } from "../../store/index.ts";
import { storedPrincipal, type Committer, type LiveLogs, type StoredCall } from "../log/index.ts";
import type { EngineSettings } from "../shared/settings.ts";
import type { Queue, QueuePlaces, Runs } from "../supervise/index.ts";
import type { CheckedAgent } from "./checks.ts";

/** What of the engine is needed to accept a message. */
export interface SendDeps {
  readonly settings: EngineSettings;
  readonly committer: Committer;
  readonly liveLogs: LiveLogs;
  /** What messages and runs of this process may hold. */
  readonly budget: ByteBudget;
  readonly runs: Pick<Runs, "enter" | "leave" | "start" | "reserve" | "release" | "stopping" | "beforeStart">;
  /** Tasks that wait for room. */
  readonly queue: Pick<Queue, "isCrowded" | "freed">;
  readonly places: Pick<QueuePlaces, "enter" | "putBack">;
  /** The configs of webhooks. `undefined`: there are none. */
  readonly configs: LazyConfigs | undefined;
}

/** A message under its idempotency key, until it is answered or stored. */
export interface Attempt {
  /** What is stored with the task or the answer, so that a later retry is recognized. */
  readonly once: OnceEffect;
  /** The key with its owner. */
  readonly name: string;
  /** What the store knows of the same message. */
  readonly found: OnceRecord | undefined | Promise<OnceRecord | undefined>;
  /** What a retry that comes meanwhile joins. `undefined` until the message is accepted. */
  admission: Admission | Promise<Admission> | undefined;
}

/** A checked message on its way to the agent. */
export interface Send {
  readonly hosted: CheckedAgent;
  readonly owner: Owner;
  readonly request: SendMessageRequest;
  readonly call: StoredCall;
  readonly principal: Principal;
  /** The headers that the agent declares. `undefined`: it declares none. */
  readonly headers: Readonly<Record<string, string>> | undefined;
  /** `undefined` where deduplication is off. */
  readonly attempt: Attempt | undefined;
  /** What extensions keep with the task of the message, and its webhook. */
  readonly kept: readonly FeatureEffect[];
  /** Lets the extensions accept the message again, where rows of its task that they have read have changed. */
  readonly again?: () => Promise<Send>;
  /** The id of the task that the message may make, where its files are stored for that. */
  readonly newTaskId?: string;
  /** Its large files that were stored while it was read. */
  readonly incoming?: IncomingFilesByUrl | undefined;
  /** The credential or the refusal that the message brought for a request of its task. */
  readonly answer?: TakenAnswer | undefined;
}

/** Where a send has its webhook: what errors name. */
export const webhookPath = "configuration.taskPushNotificationConfig";

/** The result of a message: the agent answered it directly, or it is in the log of a task. */
export type Accepted =
  | { readonly kind: "message"; readonly reply: Payload<{ readonly message: Message }> }
  | {
      readonly kind: "task";
      readonly task: TaskKey;
      readonly contextId: string;
      /** `seq` of the message. */
      readonly input: number;
      /** All records of a task that was created and answered in one commit. The answer is made of them without reading the store. */
      readonly log: readonly NewRecord[] | undefined;
      /** Whether this message created the task, so that its whole log is new to the caller. */
      readonly made: boolean;
    };

/**
 * A message that was accepted. `answer` resolves once the message is answered or stored. It is a member, because a promise
 * that resolved to another promise would wait for that one as well.
 */
export interface Admission {
  readonly answer: Promise<Accepted>;
}

/** The configs of webhooks. Rejects where there are none, whatever the card says. */
export async function configsOf({ configs }: Pick<SendDeps, "configs">): Promise<PushConfigs> {
  if (configs === undefined) throw new A2AError("PushNotificationNotSupported");
  return configs();
}

/** The admission of a message whose result is known. */
export function answered(accepted: Accepted): Admission {
  return { answer: Promise.resolve(accepted) };
}

/** A message that has the number `input` in the log of an existing task. */
export function joined({ task, contextId }: TaskHead, input: number): Accepted {
  return { kind: "task", task, contextId, input, log: undefined, made: false };
}

/**
 * The message with its context. `Object.assign` and no `{ ...message, contextId }`: on Node 20 a literal that spreads first
 * and adds members after costs eight times as much, and row `message` half as much again (docs/decisions/hot-path.md).
 */
export function inContext(message: Message, contextId: string): Message {
  return Object.assign({}, message, { contextId });
}

const none: readonly string[] = [];

/** What is stored of a call with its message. */
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
  const kept = reads.filter(({ name, store }) => store && headers[name] !== undefined);
  if (kept.length === 0) return traced;
  return { ...traced, headers: Object.fromEntries(kept.map(({ name }) => [name, headers[name] as string])) };
}
