import type { AgentCard, Message, TaskState } from "../model/index.ts";
import { resourceOf, type OperationName } from "./operations.ts";
import { TextPayload, type Payload } from "./service.ts";

/* The data that an observer receives about calls and about an agent's turns. */

/** Facts of a request, as its caller wrote them. Only the size of the request limits its ids: truncate them before you store them. */
export interface CallFacts {
  /** The task that it names. */
  readonly taskId?: string;
  /** The conversation that it names. */
  readonly contextId?: string;
  /** Id of the message that it sends. */
  readonly messageId?: string;
  /** Tasks that the message refers to (`Message.referenceTaskIds`). */
  readonly referenceTaskIds?: readonly string[];
  /** Its `tenant`. */
  readonly tenant?: string;
}

/** Name, version and description from the card of the agent. */
export type ObservedAgent = Pick<AgentCard, "name" | "description" | "version">;

/** A response, or one batch of a stream's events. */
export interface ObservedAnswer {
  /** Number of events of a stream; 1 for a response. */
  readonly events: number;
  /** The task that it is about. Absent if the answer has none, and for chunks of artifacts. */
  readonly taskId?: string;
  /** Its conversation. */
  readonly contextId?: string;
  /** The current state of the task. */
  readonly state?: TaskState;
}

/** A step of a turn (`turn.step()`). A step that an earlier attempt has finished is not reported again. */
export interface ObservedStep {
  /** The id of the agent. */
  readonly agent: string;
  /** The task. */
  readonly taskId: string;
  /** The conversation. */
  readonly contextId: string;
  /** The name of the step. */
  readonly name: string;
}

/** A delegation (`turn.delegate()`) that starts, or continues after a restart or a question. */
export interface ObservedDelegation {
  /** The id of the agent that delegates. */
  readonly agent: string;
  /** The task. */
  readonly taskId: string;
  /** The conversation. */
  readonly contextId: string;
  /** Name on the card of the other agent, which is not verified. */
  readonly name: string;
  /** The first address on its card. */
  readonly url: string | undefined;
}

/** A change of the lease of a task. */
export interface ObservedLease {
  /** The id of the agent. */
  readonly agent: string;
  /** The task. */
  readonly taskId: string;
  /** The conversation. */
  readonly contextId: string;
  /**
   * - `takenOver`: this process continues a run that was lost.
   * - `lost`: a run of this process ends, because another process may have the task.
   * - `suspended`: no process takes the task over until an operator resumes it.
   */
  readonly change: "takenOver" | "lost" | "suspended";
}

/** The events of a turn that an observer receives. Absent members are not observed. */
export interface TurnObserver<Begun> {
  step?(name: string): Begun;
  delegation?(of: Pick<ObservedDelegation, "name" | "url">): Begun;
}

/** The facts of a request of 1.0. */
export function callFacts(operation: OperationName, request: object): CallFacts {
  const { tenant, message } = request as { readonly tenant?: string; readonly message?: Partial<Message> };
  const messageId = message?.messageId;
  return {
    ...resourceOf(operation, request),
    ...(messageId !== undefined && { messageId }),
    ...(tenant && { tenant }),
  };
}

/** The usual start of stored JSON. Text with another member order is parsed. */
const head =
  /^\{(?:"(?:task|statusUpdate)":\{)?"(?:id|taskId)":"([^"\\]{1,512})","contextId":"([^"\\]{1,512})","status":\{"state":"(TASK_STATE_[A-Z_]+)"/;
const chunk = '{"artifactUpdate":';
/** Maximum length of text that is parsed, in characters. */
const maxParsed = 1 << 16;

interface Told {
  readonly id?: string;
  readonly taskId?: string;
  readonly contextId?: string;
  readonly status?: { readonly state?: TaskState };
}

/** Task id, context and state in a response or an event. Chunks of artifacts are most of a stream, and are not inspected. */
export function answerOf(payload: Payload<unknown>, events: number): ObservedAnswer {
  if (payload instanceof TextPayload) {
    const [text = payload.json] = payload.pieces ?? [];
    if (text.startsWith(chunk)) return { events };
    const [, taskId, contextId, state] = head.exec(text) ?? [];
    if (taskId !== undefined && contextId !== undefined) {
      return { events, taskId, contextId, state: state as TaskState };
    }
    if (payload.json.length > maxParsed) return { events };
  }
  const value = payload.read() as {
    readonly task?: Told;
    readonly statusUpdate?: Told;
    readonly message?: Told;
  } & Told;
  const { id, taskId = id, contextId, status } = value.task ?? value.statusUpdate ?? value.message ?? value;
  return {
    events,
    // A direct reply has a conversation, and a card has neither.
    ...(typeof taskId === "string" && typeof contextId === "string" && { taskId }),
    ...(typeof contextId === "string" && { contextId }),
    ...(typeof status?.state === "string" && { state: status.state }),
  };
}
