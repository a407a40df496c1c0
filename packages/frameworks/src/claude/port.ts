import type { AgentDefinition, Turn } from "@parley/server";

/* What the adapter takes. Types are structural: the SDK is no dependency, and its own `query()` fits. */

/** Content of a prompt, as the Messages API takes it. */
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
      /** Its bytes, in base64. */
      source: { type: "base64"; media_type: ClaudeImage; data: string };
    }
  | {
      /** A PDF. */
      type: "document";
      /** Its bytes, in base64. */
      source: { type: "base64"; media_type: "application/pdf"; data: string };
      /** Name of the file. */
      title?: string;
    };

/** Media types of images that Claude reads. */
export type ClaudeImage = "image/jpeg" | "image/png" | "image/gif" | "image/webp";

/** The message that the adapter sends. */
export interface ClaudePrompt {
  /** A message of the user. */
  type: "user";
  /** Its content. */
  message: { role: "user"; content: ClaudeContent[] };
  /** It belongs to no call of a tool. */
  parent_tool_use_id: null;
  /** The caller wrote the text, so the SDK must not expand `@path` and `/command` in it. */
  client_composed: true;
}

/** `query()` of `@anthropic-ai/claude-agent-sdk`. */
export interface ClaudeSDK {
  /** Asks Claude, and returns the messages of the session as they come. */
  query(parameters: { prompt: AsyncIterable<ClaudePrompt>; options?: object }): ClaudeStream;
}

/** `query()` itself. As a member of an interface it may take options of its own type. */
export type ClaudeQuery = ClaudeSDK["query"];

/** The result of `query()`. */
export interface ClaudeStream extends AsyncIterable<object> {
  /** Stops model and tools, and ends the answer. */
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

/** The options of a `query()`, without those that the adapter sets: session, prompts and abort. */
export type ClaudeOptions<Query extends ClaudeQuery> = Omit<NonNullable<Parameters<Query>[0]["options"]>, Owned>;

/** Description and behaviour of the agent, as `defineAgent()` takes them, and options of the adapter. `resumable` is true by default. */
export interface ClaudeDefinition<Query extends ClaudeQuery = ClaudeQuery> extends Omit<
  AgentDefinition,
  "onMessage" | "extensions"
> {
  /**
   * Options of `query()`. Defaults differ where callers are strangers: no built-in tools except questions to the user, no settings from the disk,
   * and `permissionMode: "default"`. If `canUseTool` returns null, or is absent, the user is asked. A function makes them for each turn: servers of
   * `createSdkMcpServer()` are for one session.
   */
  readonly options?: ClaudeOptions<Query> | ((turn: Turn) => ClaudeOptions<Query>);
  /** Whether the model's thinking is shown as progress. It is never kept in the history. Default false. */
  readonly reasoning?: boolean;
}
