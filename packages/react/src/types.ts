import type { AgentCard, AuthorizationRequest, CallOptions, SendInput } from "@parley/a2a";
import type { JsonValue, Part, Task, TaskState } from "@parley/a2a/model";

/**
 * - `submitted`: waits for the agent's answer, or reads the conversation.
 * - `streaming`: the agent works.
 * - `ready`: the agent has answered, or asks a question.
 * - `error`: a call failed, or the agent failed or rejected the task.
 */
export type Status = "submitted" | "streaming" | "ready" | "error";

/** A message of a conversation: what the user said, or an answer. */
export interface ConversationMessage {
  /** Equal whenever the conversation is read again. */
  readonly id: string;
  /** Who said it. */
  readonly role: "user" | "assistant";
  /** Text, data and files. Of an answer: first those of artifacts. URLs of an agent are `http:` or `https:`. */
  readonly parts: readonly Part[];
  /** Its task. Absent: not accepted yet, or a direct reply. */
  readonly taskId?: string;
  /** The state of its task. Only in the last answer of each task. */
  readonly state?: TaskState;
  /** What the agent does at the moment. */
  readonly progress?: string;
  /** Why the agent failed or rejected the task. */
  readonly failure?: string;
}

/** A tool call that waits for a person, as `fromAISDK()` of `@parley/frameworks` asks for it. */
export interface ApprovalRequest {
  /** Pass it to `addToolApprovalResponse()`. */
  readonly id: string;
  /** The call. */
  readonly toolCallId: string;
  /** The tool. */
  readonly toolName: string;
  /** Its arguments. */
  readonly input: JsonValue;
  /** Digest of tool and arguments. The answer repeats it. */
  readonly digest?: string;
  /** The person's decision, while other approvals of the question have none. */
  readonly approved?: boolean;
}

/** What an interrupted task waits for. The next message answers it. */
export interface Question {
  /** The task that waits. */
  readonly taskId: string;
  /** `input`: INPUT_REQUIRED. `auth`: AUTH_REQUIRED. */
  readonly kind: "input" | "auth";
  /** The text of the question. */
  readonly text: string;
  /** JSON Schema of the answer. Answer with `sendMessage(data(…))`. */
  readonly schema?: JsonValue;
  /** Tool calls to approve. Empty: none. */
  readonly approvals: readonly ApprovalRequest[];
  /** The authorization that the agent requests: show its URL as a link. The task continues once the person has given it. */
  readonly authorization?: AuthorizationRequest;
}

/** A person's decision on a tool call. */
export interface ApprovalResponse {
  /** `ApprovalRequest.id`. */
  readonly id: string;
  /** Whether the agent may call the tool. */
  readonly approved: boolean;
  /** Why not, for the agent. */
  readonly reason?: string;
}

/** Keeps a conversation across reloads: `sessionStorage`, `localStorage`, or an asynchronous one such as React Native's. */
export interface ConversationStorage {
  /** Reads an entry. */
  getItem(key: string): string | null | Promise<string | null>;
  /** Writes an entry. */
  setItem(key: string, value: string): unknown;
}

/** Options of a conversation. */
export interface ConversationInit {
  /** Names the conversation in the page: components with the same id share it. Default: `contextId`, else one for all components. */
  readonly id?: string;
  /** The context of an earlier conversation: its tasks are listed. Default: from `storage`, else the agent creates one. */
  readonly contextId?: string;
  /** An earlier task, for an agent that lists no tasks. */
  readonly taskId?: string;
  /** Keeps the ids of context and tasks, and messages that the agent has not accepted yet. Default: none. */
  readonly storage?: ConversationStorage;
  /** Tasks that the server has read, oldest first. The page renders them, and does not list them again. */
  readonly tasks?: readonly Task[];
}

/** A conversation at one moment. Immutable. */
export interface ConversationSnapshot {
  /** The context; `undefined` before the first answer. */
  readonly contextId: string | undefined;
  /** Oldest first. */
  readonly messages: readonly ConversationMessage[];
  /** What the agent waits for. */
  readonly question: Question | undefined;
  /** How the conversation is. */
  readonly status: Status;
  /** What failed: an `A2AError` of a call, or an error with the agent's text. */
  readonly error: Error | undefined;
}

/** What a user does in a conversation. The functions never change, and report failures as `error`. */
export interface ConversationActions {
  /**
   * Sends a message: a text, a part, parts, or a message. It continues a task that is active or waits, and begins one otherwise. A further
   * message waits until the agent has accepted this one.
   */
  readonly sendMessage: (input: SendInput, options?: CallOptions) => Promise<void>;
  /** Decides on a tool call. The answer is sent with the last decision of the question; while a message is on its way, the call does nothing. */
  readonly addToolApprovalResponse: (response: ApprovalResponse) => Promise<void>;
  /** Sends the last message of the user again: a new task in the same context. Messages that failed are all sent again, with their ids. */
  readonly regenerate: () => Promise<void>;
  /** Cancels the task. */
  readonly stop: () => Promise<void>;
  /** Continues after an error: reads the conversation and its running task again. */
  readonly resumeStream: () => Promise<void>;
  /** Forgets the error. */
  readonly clearError: () => void;
}

/** Result of `useConversation()`. */
export interface ConversationResult extends ConversationSnapshot, ConversationActions {}

/** Result of `useTask()`. */
export interface TaskResult extends Pick<ConversationSnapshot, "messages" | "question" | "status" | "error"> {
  /** The task; `undefined` before the first answer. Members that did not change are the same objects as before. */
  readonly task: Task | undefined;
  /** Cancels the task. Rejects with the `A2AError` of the call. */
  readonly stop: () => Promise<void>;
  /** Follows the task again after an error. */
  readonly resumeStream: () => void;
}

/** Result of `useAgentCard()`. */
export interface AgentCardResult {
  /** The card; `undefined` until it arrives. */
  readonly card: AgentCard | undefined;
  /** `submitted` until the card arrives. */
  readonly status: "submitted" | "ready" | "error";
  /** Why the agent could not be reached. */
  readonly error: Error | undefined;
  /** Connects again after an error. */
  readonly retry: () => void;
}
