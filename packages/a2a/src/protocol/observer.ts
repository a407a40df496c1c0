import type { Logger } from "../base/index.ts";
import { toA2AError, type A2AError } from "../model/index.ts";
import type { OperationName } from "./operations.ts";
import type { Principal } from "./service.ts";

/** Called once when what was observed is over. `error`: why it failed; absent: it ended well. */
export type Ended = (error?: A2AError) => void;

/**
 * Sees what a server and a client do: for metrics, traces and logs. Every member is optional, and what nobody observes is not
 * reported: no object is made for it. A member that is called at the beginning may return a function for the end.
 *
 * It changes nothing. What a member throws on a server is a line in its log.
 *
 * @example
 * ```ts
 * const counter: Observer = {
 *   call({ operation }) {
 *     const since = performance.now();
 *     return (error) => console.log(operation, error?.code ?? "ok", performance.now() - since);
 *   },
 * };
 * ```
 */
export interface Observer {
  /** A call of an agent's service begins, after the caller is known and before it is authorized. A stream ends when it is over. */
  call?(call: ObservedCall): Ended | undefined | void;
  /** An agent begins a turn. */
  turn?(turn: ObservedTurn): Ended | undefined | void;
  /** The store begins a transaction, with what several tasks have to store. */
  commit?(commit: ObservedCommit): Ended | undefined | void;
  /** Records were stored in the log of a task. */
  append?(append: ObservedAppend): void;
  /** A client sends a request to an agent, each try for itself: see `observeRequests`. A stream ends when it is over. */
  request?(request: ObservedRequest): Ended | undefined | void;
}

/** A call of an agent's service. */
export interface ObservedCall {
  /** The operation that is called. */
  readonly operation: OperationName;
  /** The id of the agent (`AgentMount.id`). */
  readonly agent: string;
  /** Who calls. */
  readonly principal: Principal;
  /** Protocol version, `Major.Minor`. */
  readonly version: string;
  /** W3C `traceparent` of the caller. */
  readonly trace: string | undefined;
}

/** A turn of an agent. */
export interface ObservedTurn {
  /** The id of the agent. */
  readonly agent: string;
  /** The id that the task has, or that it gets if the agent makes one. */
  readonly taskId: string;
  /** The conversation. */
  readonly contextId: string;
  /** Number of the turn in its task, from 1. */
  readonly turn: number;
  /** Which try of the turn, from 1; more than 1 resumes a run that was lost. */
  readonly attempt: number;
  /** W3C `traceparent` of the call that the turn answers. */
  readonly trace: string | undefined;
}

/** A transaction of the store. */
export interface ObservedCommit {
  /** How many items are in it, each of one task or conversation. */
  readonly items: number;
}

/** Records that were stored. */
export interface ObservedAppend {
  /** The id of the agent. */
  readonly agent: string;
  /** The task. */
  readonly taskId: string;
  /** How many records there were. */
  readonly records: number;
  /** Number of the last of them in the log of the task, from 1. */
  readonly seq: number;
}

/** A request to an agent. */
export interface ObservedRequest {
  /** The operation that is called. */
  readonly operation: OperationName;
  /** Protocol version, `Major.Minor`. */
  readonly version: string;
  /** W3C `traceparent` that goes with it. */
  readonly trace: string | undefined;
}

/** The same observer, with what it throws in the log. Members that it has not are not there. */
export function safeObserver(observer: Observer, logger: Logger): Observer {
  const attempt = <T>(run: () => T): T | undefined => {
    try {
      return run();
    } catch (cause) {
      logger.error("An observer failed", { cause });
      return undefined;
    }
  };
  const begins =
    <T>(begin: (observed: T) => Ended | undefined | void) =>
    (observed: T): Ended | undefined => {
      const ended = attempt(() => begin.call(observer, observed));
      return typeof ended === "function" ? (error) => attempt(() => ended(error)) : undefined;
    };
  const { call, turn, commit, append, request } = observer;
  return {
    ...(call !== undefined && { call: begins(call) }),
    ...(turn !== undefined && { turn: begins(turn) }),
    ...(commit !== undefined && { commit: begins(commit) }),
    ...(append !== undefined && {
      append: (observed: ObservedAppend) => attempt(() => append.call(observer, observed)),
    }),
    ...(request !== undefined && { request: begins(request) }),
  };
}

/** Awaits an answer, and tells how it ended. */
export async function endedBy<T>(ended: Ended | undefined | void, answer: Promise<T>): Promise<T> {
  if (typeof ended !== "function") return answer;
  try {
    const result = await answer;
    ended();
    return result;
  } catch (thrown) {
    ended(toA2AError(thrown));
    throw thrown;
  }
}
