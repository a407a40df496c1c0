import type { AgentDefinition, Turn } from "@parley/server";

/* The adapter's inputs. The types are structural, because the SDK is not a dependency. `query()` of the SDK fits. */

/** Content of a prompt, in the format of the Messages API. */
export type ClaudeContent =
  | {
      /** A text. */
      type: "text";
      /** The text. */
      text: string;
    }
  | {
      /** An image. */
      type: "image";
      /** The bytes of the image, in base64. */
      source: { type: "base64"; media_type: ClaudeImage; data: string };
    }
  | {
      /** A PDF. */
      type: "document";
      /** The bytes of the PDF, in base64. */
      source: { type: "base64"; media_type: "application/pdf"; data: string };
      /** Name of the file. */
      title?: string;
    };

/** Image media types that Claude accepts. */
export type ClaudeImage = "image/jpeg" | "image/png" | "image/gif" | "image/webp";

/** The message that the adapter sends. */
export interface ClaudePrompt {
  /** A message of the user. */
  type: "user";
  /** The content of the message. */
  message: { role: "user"; content: ClaudeContent[] };
  /** Always null, because the message does not belong to a tool call. */
  parent_tool_use_id: null;
  /** The caller wrote the text, so the SDK must not expand `@path` or `/command` in it. */
  client_composed: true;
}

/** `query()` of `@anthropic-ai/claude-agent-sdk`. */
export interface ClaudeSDK {
  /** Asks Claude, and streams the messages of the session. */
  query(parameters: { prompt: AsyncIterable<ClaudePrompt>; options?: object }): ClaudeStream;
}

/** `query()` itself. Declared as an interface member, so that its options may have a narrower type. */
export type ClaudeQuery = ClaudeSDK["query"];

/** The result of `query()`. */
export interface ClaudeStream extends AsyncIterable<object> {
  /** Stops the model and tools, and ends the answer. */
  interrupt?(): Promise<unknown>;
}

/** Options that the adapter sets. */
type Owned =
  | "abortController"
  | "continue"
  | "forkSession"
  | "includePartialMessages"
  | "permissionPromptToolName"
  | "permissionPrompts"
  | "persistSession"
  | "resume"
  | "resumeDropsTurn"
  | "resumeSessionAt"
  | "sessionId"
  | "sessionStoreFlush"
  | "verbatimPrompts";

/** The options of `query()`, without those that the adapter sets: session, prompts and abort. */
export type ClaudeOptions<Query extends ClaudeQuery> = Omit<NonNullable<Parameters<Query>[0]["options"]>, Owned>;

/** Description and behaviour of the agent, as for `defineAgent()`, and options of the adapter. `resumable` is true by default. */
export interface ClaudeDefinition<Query extends ClaudeQuery = ClaudeQuery> extends Omit<
  AgentDefinition,
  "onMessage" | "extensions"
> {
  /**
   * Options of `query()`. The defaults assume untrusted callers: no built-in tools except questions to the user, no settings from disk, and
   * `permissionMode: "default"`. If `canUseTool` is absent or returns null, the user is asked. Pass a function to create the options for each
   * turn, because a server of `createSdkMcpServer()` serves only one session.
   */
  readonly options?: ClaudeOptions<Query> | ((turn: Turn) => ClaudeOptions<Query>);
  /** Whether the model's thinking is shown as progress. Thinking is never stored in the history. Default: false. */
  readonly reasoning?: boolean;
}
