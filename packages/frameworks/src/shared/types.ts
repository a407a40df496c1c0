import type { UIMessage, UIMessageChunk } from "ai";
import type { JsonValue, TaskState } from "@parley/a2a/model";

/** What a message of the agent says about its task, as `message.metadata.a2a`. */
export interface A2AMetadata {
  /** Where the message belongs, and how its task is. */
  readonly a2a: {
    readonly contextId?: string;
    /** Absent: a direct reply. */
    readonly taskId?: string;
    readonly state?: TaskState;
  };
}

/** Data parts of the agent's messages: `data-progress`, `data-form`, `data-artifact`, `data-file` and `data-approval`. */
export type A2ADataParts = {
  /** What the agent does at the moment: the message of a WORKING status. The latest one replaces the others. */
  progress: { readonly text: string };
  /** The JSON Schema of the answer that the agent waits for. Answer with a data part: `sendMessage({ parts: [{ type: "data-answer", data }] })`. */
  form: { readonly schema: JsonValue };
  /** Data of an artifact or a message. */
  artifact: { readonly artifactId?: string; readonly name?: string; readonly data: JsonValue };
  /** A file that is too large for the page's memory: `client.download({ taskId, artifactId })` reads it. */
  file: { readonly artifactId: string; readonly filename?: string; readonly mediaType: string; readonly bytes: number };
  /** The digest of the arguments that a person approves. The transport sends it back, once: then the agent has the decision, and `answered` is true. */
  approval: { readonly approvalId: string; readonly digest?: string; readonly answered?: boolean };
  /** Data of the user: it is sent to the agent as it is. */
  answer: JsonValue;
};

/** A message of `useChat()` with an agent. */
export type A2AUIMessage = UIMessage<A2AMetadata, A2ADataParts>;

/** A chunk of the stream that `useChat()` reads. */
export type A2AChunk = UIMessageChunk<A2AMetadata, A2ADataParts>;
