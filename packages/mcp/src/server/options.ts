import type { Client, ConnectOptions } from "@parley/a2a";
import type { Clock, Logger, Principal } from "@parley/a2a/protocol";

/* The port of the bridge: what it is given, and what it gives. */

/** What the agent may know of a caller of the bridge: credentials of the bridge, or of an exchange. */
export type CallerCredentials = Pick<ConnectOptions, "credentials" | "credentialOrigins" | "headers">;

/** Options of `mcpServer()`. */
export interface McpServerOptions {
  /** Ids of the skills that become tools. Default: all on the card, at most 100. A card without skills gets one tool, `send_message`. */
  readonly skills?: readonly string[];
  /**
   * Longest time that a call blocks, in milliseconds. Many clients give up after 60 s. Afterwards the answer has a handle, with which
   * `get_task`, `answer_task` and `cancel_task` continue. Default 50 s.
   */
  readonly maxWaitMs?: number;
  /** Largest content of an answer, in bytes. Larger text is cut, and larger files become links to resources. Default 1 MiB. */
  readonly maxAnswerBytes?: number;
  /** Largest description of a tool, in bytes of UTF-8. Default 1,024. */
  readonly maxDescriptionBytes?: number;
  /**
   * Secret of at least 32 characters that binds tasks and conversations to their callers. Required if `fetch` is called with a caller.
   * Bridges that share it accept each other's handles. Default: none; handles are then the ids of the agent.
   */
  readonly key?: string;
  /**
   * Credentials for a caller's calls, such as those of a token exchange (RFC 8693). The caller's own `Authorization` is never forwarded.
   * They are used for a minute, then it is called again. Functions in `headers` are called for each request.
   * Default: all callers share the credentials of the client, or of `connect`.
   */
  readonly credentialsFor?: (caller: Principal) => CallerCredentials | Promise<CallerCredentials>;
  /** Options of the connection, if the agent is a URL. Needed with `credentialsFor`. Default: none. */
  readonly connect?: ConnectOptions;
  /** How often clients of the tasks extension should poll, in milliseconds. Default 2 s. */
  readonly pollIntervalMs?: number;
  /**
   * Gives clients of 2025-11-25 sessions over HTTP, which questions within a call, subscriptions and cancellation need. A session is known to
   * this process only: with several processes, route by `Mcp-Session-Id`, or set it to false. Default true, for at most 100 clients.
   */
  readonly sessions?: boolean;
  /**
   * Answers only programs of this machine: checks `Host` and `Origin`, so that no page in a browser uses the bridge (DNS rebinding).
   * Default false: the host checks them, as `serve()` does.
   */
  readonly localOnly?: boolean;
  /** Log. Default: none. On stdio, write to standard error only. */
  readonly logger?: Logger;
  /** Measures `maxWaitMs`. Default: the runtime's. */
  readonly clock?: Clock;
}

/** An A2A agent as an MCP server. `mcpServer()` makes it. */
export interface McpBridge {
  /** The client of the agent. */
  readonly client: Client;
  /**
   * Answers one request of Streamable HTTP. The host authenticates callers.
   *
   * @param caller - Who calls, if the host knows it. It needs the option `key`.
   */
  fetch(this: void, request: Request, caller?: Principal): Promise<Response>;
  /** Serves this process's standard input and output. The process has one caller: its parent. */
  stdio(this: void): McpStdio;
  /** Ends open calls. Tasks continue at the agent. */
  close(this: void): Promise<void>;
}

/** A bridge on standard input and output. */
export interface McpStdio {
  /** Resolves when the client has closed the connection. */
  readonly closed: Promise<void>;
  /** Closes the connection. */
  close(): Promise<void>;
}
