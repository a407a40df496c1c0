import type { AgentCard, AuthorizationRequest, CallOptions, SendInput } from "@parley/a2a";
import type { JsonValue, Part, Task, TaskState } from "@parley/a2a/model";

/**
 * - `submitted`: waiting for the agent's answer, or reading the conversation.
 * - `streaming`: the agent is working.
 * - `ready`: the agent answered, or asks a question.
 * - `error`: a call failed, or the agent failed or rejected the task.
 */
export type Status = "submitted" | "streaming" | "ready" | "error";

/** A message of a conversation: a user message or an answer. */
export interface ConversationMessage {
  /** The same each time the conversation is read. */
  readonly id: string;
  /** Who said it. */
  readonly role: "user" | "assistant";
  /** Text, data and files. In an answer, artifacts come first. URLs from an agent are always `http:` or `https:`. */
  readonly parts: readonly Part[];
  /** Its task. Absent if the message is not accepted yet, or is a direct reply. */
  readonly taskId?: string;
  /** The state of its task. Only in the last answer of each task. */
  readonly state?: TaskState;
  /** The agent's current activity. */
  readonly progress?: string;
  /** Why the agent failed or rejected the task. */
  readonly failure?: string;
}

/** A tool call that waits for approval, in the format of `fromAISDK()` of `@parley/frameworks`. */
export interface ApprovalRequest {
  /** Pass it to `addToolApprovalResponse()`. */
  readonly id: string;
  /** The call. */
  readonly toolCallId: string;
  /** The tool. */
  readonly toolName: string;
  /** Its arguments. */
  readonly input: JsonValue;
  /** Digest of the tool and its arguments. The answer repeats it. */
  readonly digest?: string;
  /** The user's decision, while other approvals of the question are undecided. */
  readonly approved?: boolean;
}

/** The question of an interrupted task. The next message answers it. */
export interface Question {
  /** The task that waits. */
  readonly taskId: string;
  /** `input`: INPUT_REQUIRED. `auth`: AUTH_REQUIRED. */
  readonly kind: "input" | "auth";
  /** The text of the question. */
  readonly text: string;
  /** JSON Schema of the answer. Answer with `sendMessage(data(…))`. */
  readonly schema?: JsonValue;
  /** Tool calls to approve. May be empty. */
  readonly approvals: readonly ApprovalRequest[];
  /** The authorization that the agent requests. Show its URL as a link. The task continues once the user has granted it. */
  readonly authorization?: AuthorizationRequest;
}

/** The user's decision on a tool call. */
export interface ApprovalResponse {
  /** `ApprovalRequest.id`. */
  readonly id: string;
  /** Whether the agent may call the tool. */
  readonly approved: boolean;
  /** The reason for a denial, for the agent. */
  readonly reason?: string;
}

/** Stores a conversation across reloads: `sessionStorage`, `localStorage`, or an asynchronous storage such as React Native's. */
export interface ConversationStorage {
  /** Reads an entry. */
  getItem(key: string): string | null | Promise<string | null>;
  /** Writes an entry. */
  setItem(key: string, value: string): unknown;
}

/** Options of a conversation. */
export interface ConversationInit {
  /** Identifies the conversation in the page. Components with the same id share it. Default: `contextId`, else one conversation for all components. */
  readonly id?: string;
  /** The context of an earlier conversation, whose tasks are then listed. Default: from `storage`, else the agent creates one. */
  readonly contextId?: string;
  /** An earlier task, for an agent that does not list tasks. */
  readonly taskId?: string;
  /** Stores the ids of the context and its tasks, and messages that the agent has not accepted yet. Default: none. */
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
  /** The agent's open question. */
  readonly question: Question | undefined;
  /** The status of the conversation. */
  readonly status: Status;
  /** The `A2AError` of a failed call, or an error with the agent's text. */
  readonly error: Error | undefined;
}

/** Actions in a conversation. The functions are stable, and report failures as `error`. */
export interface ConversationActions {
  /**
   * Sends a message: a text, a part, parts, or a message. It continues the active or waiting task, or else starts a new one. A further
   * message waits until the agent has accepted this one.
   */
  readonly sendMessage: (input: SendInput, options?: CallOptions) => Promise<void>;
  /** Decides on a tool call. The last decision of a question sends the answer. Has no effect while a message is in flight. */
  readonly addToolApprovalResponse: (response: ApprovalResponse) => Promise<void>;
  /** Sends the user's last message again, as a new task in the same context. If messages failed, retries all of them with their ids instead. */
  readonly regenerate: () => Promise<void>;
  /** Cancels the task. */
  readonly stop: () => Promise<void>;
  /** Continues after an error by reading the conversation and its running task again. */
  readonly resumeStream: () => Promise<void>;
  /** Clears the error. */
  readonly clearError: () => void;
}

/** Result of `useConversation()`. */
export interface ConversationResult extends ConversationSnapshot, ConversationActions {}

/** Result of `useTask()`. */
export interface TaskResult extends Pick<ConversationSnapshot, "messages" | "question" | "status" | "error"> {
  /** The task; `undefined` before the first answer. Unchanged members keep their identity. */
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
  /** Why the agent is unreachable. */
  readonly error: Error | undefined;
  /** Reconnects after an error. */
  readonly retry: () => void;
}
