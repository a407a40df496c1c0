import type { Client, ConnectOptions } from "@parley/a2a";
import type { Clock, Logger, Principal } from "@parley/a2a/protocol";

/* The options and the interface of the bridge. */

/** Credentials for calls to the agent on behalf of a caller: the bridge's own credentials, or the result of a token exchange. */
export type CallerCredentials = Pick<ConnectOptions, "credentials" | "credentialOrigins" | "headers">;

/** Options of `mcpServer()`. */
export interface McpServerOptions {
  /** Ids of the skills that become tools. Default: all skills on the card, at most 100. If the card has none, the only tool is `send_message`. */
  readonly skills?: readonly string[];
  /**
   * Maximum time that a call blocks, in milliseconds. After this time, the result has a handle for `get_task`, `answer_task` and
   * `cancel_task`. Keep the value below the client's timeout, which is often 60 s. Default: 50 s.
   */
  readonly maxWaitMs?: number;
  /** Maximum content of a result, in bytes. Longer text is truncated, and larger files become resource links. Default: 1 MiB. */
  readonly maxAnswerBytes?: number;
  /** Maximum length of a tool description, in bytes of UTF-8. Default: 1,024. */
  readonly maxDescriptionBytes?: number;
  /**
   * Secret of at least 32 characters that binds tasks and conversations to their callers. Required if `fetch` is called with a caller.
   * Bridges with the same key accept each other's handles. Default: no key; handles are then the agent's ids.
   */
  readonly key?: string;
  /**
   * Returns the credentials for a caller's calls, such as from a token exchange (RFC 8693). The bridge caches them for one minute.
   * Functions in `headers` are called for each request. The caller's own `Authorization` is never forwarded. Default: all callers share the
   * credentials of the client or of `connect`.
   */
  readonly credentialsFor?: (caller: Principal) => CallerCredentials | Promise<CallerCredentials>;
  /** Options of the connection, if the agent is a URL. Default: none. */
  readonly connect?: ConnectOptions;
  /** How often clients of the tasks extension should poll, in milliseconds. Default 2 s. */
  readonly pollIntervalMs?: number;
  /**
   * Gives 2025-11-25 clients sessions over HTTP, which questions within a call, subscriptions and cancellation require. Sessions are local to the
   * process. If there are several processes, route by `Mcp-Session-Id` or set this option to false. Default: true, for at most 100 clients.
   */
  readonly sessions?: boolean;
  /**
   * Answers only programs on this machine. Checks `Host` and `Origin`, so that web pages cannot use the bridge (DNS rebinding).
   * Default: false, because the host program checks these headers, as `serve()` does.
   */
  readonly localOnly?: boolean;
  /** Log. Default: none. On stdio, write to standard error only. */
  readonly logger?: Logger;
  /** Measures `maxWaitMs`. Default: the clock of the runtime. */
  readonly clock?: Clock;
}

/** An A2A agent as an MCP server, from `mcpServer()`. */
export interface McpBridge {
  /** The client of the agent. */
  readonly client: Client;
  /**
   * Answers one request of Streamable HTTP. The host authenticates callers.
   *
   * @param caller - The authenticated caller, if any. Requires the option `key`.
   */
  fetch(this: void, request: Request, caller?: Principal): Promise<Response>;
  /** Serves MCP on standard input and output. The parent process is the only caller. */
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
