import type { UIMessage, UIMessageChunk } from "ai";
import type { JsonValue, TaskState } from "@parley/a2a/model";

/** The task of an agent message, as `message.metadata.a2a`. */
export interface A2AMetadata {
  /** The context and the task of the message, and the state of the task. */
  readonly a2a: {
    readonly contextId?: string;
    /** Absent for a direct reply. */
    readonly taskId?: string;
    readonly state?: TaskState;
  };
}

/** Data parts of the agent's messages: `data-progress`, `data-form`, `data-artifact`, `data-file` and `data-approval`. */
export type A2ADataParts = {
  /** The agent's current activity, which is the message of a WORKING status. Each message replaces the previous message. */
  progress: { readonly text: string };
  /** The JSON Schema of the expected answer. Answer with a data part: `sendMessage({ parts: [{ type: "data-answer", data }] })`. */
  form: { readonly schema: JsonValue };
  /** Data of an artifact or a message. */
  artifact: { readonly artifactId?: string; readonly name?: string; readonly data: JsonValue };
  /** A file that is too large to embed. Read it with `client.download({ taskId, artifactId })`. */
  file: { readonly artifactId: string; readonly filename?: string; readonly mediaType: string; readonly bytes: number };
  /** The digest of the arguments to approve. The transport returns it once; when the agent has the decision, `answered` is true. */
  approval: { readonly approvalId: string; readonly digest?: string; readonly answered?: boolean };
  /** The user's data, sent to the agent unchanged. */
  answer: JsonValue;
};

/** A `useChat()` message with an A2A agent. */
export type A2AUIMessage = UIMessage<A2AMetadata, A2ADataParts>;

/** A chunk of the stream that `useChat()` reads. */
export type A2AChunk = UIMessageChunk<A2AMetadata, A2ADataParts>;
