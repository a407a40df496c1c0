import type { CredentialProvider } from "@parley/a2a/credentials";
import { untilAborted } from "@parley/a2a/internal/base/async";
import {
  guardedFetch,
  type Clock,
  type Dialer,
  type Logger,
  type NetPolicy,
  type Principal,
} from "@parley/a2a/protocol";
import {
  Client,
  isInputRequiredResult,
  SdkHttpError,
  StreamableHTTPClientTransport,
  type CallToolResult,
  type CreateMessageRequest,
  type CreateMessageResult,
  type InputRequiredResult,
  type Transport,
} from "@modelcontextprotocol/client";
import { callerKey } from "../server/handles.ts";
import { authorized } from "./authorized.ts";
import { reasonOf } from "./mcp-tools.ts";
import { McpToolError, type ElicitAnswer, type McpCall, type McpCallOptions, type McpClient } from "./port.ts";

/* Shares connections to MCP servers among turns. */

/** A server that the pool starts as a process. Its environment has only the given variables and a few harmless ones, such as PATH. */
export interface StdioServer {
  /** The program. */
  readonly command: string;
  /** Arguments of the program. Default: none. */
  readonly args?: readonly string[];
  /** Environment variables of the program. Default: none. */
  readonly env?: Readonly<Record<string, string>>;
  /** Working directory of the program. Default: the current directory. */
  readonly cwd?: string;
}

/** A server at a URL. */
export interface HttpServer {
  /** URL of its Streamable HTTP endpoint. */
  readonly url: string;
  /** Headers of each request, such as `Authorization` with this agent's credentials. */
  readonly headers?: Readonly<Record<string, string>> | (() => Promise<Readonly<Record<string, string>>>);
  /**
   * OAuth of this agent, such as `clientCredentials()` of `@parley/a2a/credentials`. Or a function that `server()` calls for each caller. With
   * `tokenExchange({ …, subject: caller })`, the server gets a token that was issued for the server, never the caller's own token.
   */
  readonly credentials?: CredentialProvider | ((caller: Principal) => CredentialProvider);
}

/** Options of `mcpPool()`. */
export interface McpPoolOptions {
  /** The servers, by name. */
  readonly servers: Readonly<Record<string, StdioServer | HttpServer>>;
  /** Maximum number of open connections. At the limit, a new connection replaces an idle one. Default: 16. */
  readonly maxConnections?: number;
  /** Closes a connection after this time without a call, in milliseconds. Default: 1 minute. */
  readonly idleMs?: number;
  /** Maximum size of a server's answer, in bytes. A larger answer fails its call. Default: 4 MiB. */
  readonly maxAnswerBytes?: number;
  /** Maximum duration of a call or stream over HTTP, in milliseconds. Default: 5 minutes. */
  readonly timeoutMs?: number;
  /** Allowed addresses. Default: public addresses. */
  readonly policy?: Omit<NetPolicy, "maxBytes" | "timeout">;
  /** Connects only to checked addresses: `nodeDialer()` of `@parley/node`. Default: the runtime's `fetch`, which resolves names again. */
  readonly dialer?: Dialer;
  /** Lets servers use a model of this agent (sampling). Default: the client does not declare the capability. */
  readonly sampling?: (params: CreateMessageRequest["params"]) => Promise<CreateMessageResult>;
  /** Log. Default: none. */
  readonly logger?: Logger;
  /** Measures `idleMs`. Default: the clock of the runtime. */
  readonly clock?: Clock;
}

/** Connections to MCP servers. */
export interface McpPool {
  /**
   * A server for `mcpTools()`. The first call opens the connection. If the process of the server ends, the next call reconnects.
   *
   * @param caller - Owner of the connection, such as `turn.principal`. Required if `credentials` is a function. Default: callers share a connection.
   * @throws McpToolError for an unknown name, or a missing caller.
   */
  server(name: string, caller?: Principal): McpClient;
  /** Number of open connections. */
  readonly size: number;
  /** Ends all connections and processes. */
  close(): Promise<void>;
}

const runtimeClock: Clock = {
  now: () => Date.now(),
  elapsed: () => performance.now(),
  after(ms, run) {
    const timer = setTimeout(run, ms).unref();
    return () => clearTimeout(timer);
  },
};

/** Makes a pool. Keep one for the whole process, and close it on exit. */
export function mcpPool(options: McpPoolOptions): McpPool {
  return new Pool(options);
}

/** A server, and the owner of the connection to it. */
interface Target {
  readonly name: string;
  readonly key: string;
  readonly config: StdioServer | HttpServer;
  readonly credentials: CredentialProvider | undefined;
}

/** The credentials and the sampling budget of a connection. */
interface Access {
  /** Derived from the caller's latest principal, which has the newest token. */
  credentials: CredentialProvider | undefined;
  /** Remaining model calls of a 2025-11-25 server, counted per connection, because its requests do not identify their tool call. */
  samples: number;
}

interface Connection {
  readonly client: Promise<Client>;
  calls: number;
  /** The elicitation handlers of the calls in progress. */
  readonly elicits: Set<(request: unknown) => ElicitAnswer>;
  readonly access: Access;
  stopIdle(): void;
}

function targetOf(name: string, config: StdioServer | HttpServer, caller: Principal | undefined): Target {
  const { credentials } = "url" in config ? config : {};
  if (typeof credentials !== "function") return { name, key: name, config, credentials };
  if (caller === undefined)
    throw new McpToolError(
      `The MCP server ${name} has per-caller credentials; pass the caller, such as turn.principal`,
    );
  return { name, key: `${name} ${callerKey(caller)}`, config, credentials: credentials(caller) };
}

class Pool implements McpPool {
  readonly #options: McpPoolOptions;
  readonly #open = new Map<string, Connection>();
  readonly #closed = new AbortController();

  constructor(options: McpPoolOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#open.size;
  }

  server(name: string, caller?: Principal): McpClient {
    const config = this.#options.servers[name];
    if (config === undefined) {
      throw new McpToolError(
        `The pool has no server ${JSON.stringify(name)}; it has ${JSON.stringify(Object.keys(this.#options.servers))}`,
      );
    }
    const target = targetOf(name, config, caller);
    return {
      name,
      getServerVersion: () => ({ name }),
      listTools: (_, call) => this.#use(target, call, (client) => client.listTools(undefined, sdkOptions(call))),
      callTool: (params: McpCall, call) =>
        this.#use(target, call, (client) => this.#call(client, params, sdkOptions(call))),
    };
  }

  async #use<T>(
    target: Target,
    { onElicit, signal }: McpCallOptions = {},
    run: (client: Client) => Promise<T>,
  ): Promise<T> {
    const { key } = target;
    let connection = this.#claim(target);
    for (; connection === undefined; connection = this.#claim(target)) await this.#makeRoom();
    if (onElicit !== undefined) connection.elicits.add(onElicit);
    try {
      return await run(await untilAborted(connection.client, signal));
    } catch (error) {
      // The server no longer has the session, so the next call creates a new session.
      if (error instanceof SdkHttpError && error.status === 404 && this.#open.get(key) === connection)
        void this.#end(key);
      throw error;
    } finally {
      connection.calls -= 1;
      if (onElicit !== undefined) connection.elicits.delete(onElicit);
      if (connection.calls === 0) this.#whenIdle(key, connection);
    }
  }

  /** Calls a tool. A 2026-07-28 server can request model calls in its result. */
  async #call(client: Client, params: McpCall, options: Omit<McpCallOptions, "onElicit">): Promise<unknown> {
    const { sampling } = this.#options;
    let result = await client.callTool(params, options);
    for (let round = 0; sampling !== undefined && round < maxSamples; round += 1) {
      const asked = samplesIn(result);
      if (asked.length === 0) break;
      const answers: [string, CreateMessageResult][] = [];
      for (const [key, request] of asked) answers.push([key, await sampling(request)]);
      const { requestState } = result;
      const given = {
        inputResponses: Object.fromEntries(answers),
        ...(requestState !== undefined && { requestState }),
      };
      result = await client.callTool({ ...params, ...given }, options);
    }
    return result;
  }

  /** The connection for a call. `undefined` if too many are open. Synchronous, so that parallel calls cannot exceed the limit. */
  #claim(target: Target): Connection | undefined {
    if (this.#closed.signal.aborted) throw new McpToolError("The pool is closed");
    const isFull = this.#open.size >= this.#maxConnections;
    const connection = this.#open.get(target.key) ?? (isFull ? undefined : this.#begin(target));
    if (connection === undefined) return undefined;
    connection.stopIdle();
    connection.calls += 1;
    connection.access.credentials = target.credentials;
    connection.access.samples = maxSamples;
    return connection;
  }

  #whenIdle(key: string, connection: Connection): void {
    const { idleMs = 60_000, clock = runtimeClock } = this.#options;
    connection.stopIdle();
    if (this.#open.get(key) !== connection) return;
    connection.stopIdle = clock.after(idleMs, () => void this.#end(key));
  }

  #begin({ name, key, config, credentials }: Target): Connection {
    const elicits = new Set<(request: unknown) => ElicitAnswer>();
    const access: Access = { credentials, samples: 0 };
    const client = this.#connect(name, config, { elicits, access });
    const connection: Connection = { client, calls: 0, elicits, access, stopIdle: () => undefined };
    this.#open.set(key, connection);
    const forget = (): void => {
      connection.stopIdle();
      if (this.#open.get(key) === connection) this.#open.delete(key);
    };
    client.then((made) => (made.onclose = forget), forget);
    return connection;
  }

  /** Closes an idle connection. */
  async #makeRoom(): Promise<void> {
    const idle = [...this.#open].find(([, { calls }]) => calls === 0);
    if (idle === undefined) throw new McpToolError(`All ${this.#maxConnections} connections to MCP servers are in use`);
    await this.#end(idle[0]);
  }

  async #connect(
    name: string,
    config: StdioServer | HttpServer,
    { elicits, access }: Pick<Connection, "elicits" | "access">,
  ): Promise<Client> {
    const { sampling } = this.#options;
    const capabilities = { elicitation: { form: {}, url: {} }, ...(sampling !== undefined && { sampling: {} }) };
    const client = new Client(
      { name: "parley", version: "1.0.0" },
      {
        listMaxPages: maxPages,
        capabilities,
        versionNegotiation: { mode: "auto" },
        inputRequired: { autoFulfill: false },
      },
    );
    client.setRequestHandler("elicitation/create", (request) => {
      const [only, ...others] = elicits;
      // A 2025-11-25 elicitation does not identify its call, so it is answered only if exactly one call is in progress.
      const answer = only !== undefined && others.length === 0 ? only(request) : undefined;
      return answer?.action === "accept" ? { ...answer } : { action: "cancel" };
    });
    if (sampling !== undefined) {
      client.setRequestHandler("sampling/createMessage", ({ params }) => {
        access.samples -= 1;
        if (access.samples < 0) throw new McpToolError(`A call may use the model at most ${maxSamples} times`);
        return sampling(params);
      });
    }
    const transport = "url" in config ? this.#http(config, access) : await this.#stdio(config);
    try {
      await untilAborted(client.connect(transport, { timeout: 30_000 }), this.#closed.signal);
    } catch (error) {
      await client.close();
      throw new McpToolError(`Cannot connect to the MCP server ${name}: ${reasonOf(error)}`, { cause: error });
    }
    client.onerror = this.#reporterFor(name);
    return client;
  }

  /** Logs errors of a connection, at most one per second, because a server can cause any number of errors. */
  #reporterFor(server: string): (error: Error) => void {
    const { logger, clock = runtimeClock } = this.#options;
    let next = 0;
    return (cause) => {
      if (clock.elapsed() < next) return;
      next = clock.elapsed() + 1000;
      logger?.warn("MCP connection failed", { server, cause });
    };
  }

  async #stdio({ command, args = [], env = {}, cwd }: StdioServer): Promise<Transport> {
    // Loaded on demand, because it starts processes.
    const { getDefaultEnvironment, StdioClientTransport } = await import("@modelcontextprotocol/client/stdio");
    return new StdioClientTransport({
      command,
      args: [...args],
      env: { ...getDefaultEnvironment(), ...env },
      stderr: "ignore",
      maxBufferSize: this.#maxBytes,
      ...(cwd !== undefined && { cwd }),
    });
  }

  #http({ url, headers = {} }: HttpServer, access: Access): Transport {
    const { policy = {}, dialer, timeoutMs = 300_000, clock = runtimeClock } = this.#options;
    const guarded = guardedFetch({ ...policy, maxBytes: this.#maxBytes, timeout: timeoutMs }, dialer);
    const sendWith = async (
      to: string,
      init: RequestInit,
      given: Readonly<Record<string, string>>,
    ): Promise<Response> => {
      const own = typeof headers === "function" ? await headers() : headers;
      const sent = new Headers(init.headers);
      for (const [field, value] of Object.entries({ ...own, ...given })) sent.set(field, value);
      return guarded(to, {
        method: init.method ?? "GET",
        headers: Object.fromEntries(sent),
        ...(typeof init.body === "string" && { body: init.body }),
        ...(init.signal instanceof AbortSignal && { signal: init.signal }),
      });
    };
    const send = (to: string | URL, init: RequestInit = {}): Promise<Response> => {
      const call = sendWith.bind(undefined, String(to), init);
      return access.credentials === undefined ? call({}) : authorized(access.credentials, url, init, call);
    };
    return new StreamableHTTPClientTransport(new URL(url), {
      fetch: send,
      reconnectionScheduler: (reconnect, delay) =>
        clock.after(Math.min(Math.max(delay, minReconnectMs), timeoutMs), reconnect),
    });
  }

  get #maxConnections(): number {
    return this.#options.maxConnections ?? 16;
  }

  get #maxBytes(): number {
    return this.#options.maxAnswerBytes ?? 4 << 20;
  }

  async #end(key: string): Promise<void> {
    const connection = this.#open.get(key);
    this.#open.delete(key);
    connection?.stopIdle();
    try {
      await (await connection?.client)?.close();
    } catch (error) {
      this.#options.logger?.warn("Failed to close an MCP connection", { server: key, cause: error });
    }
  }

  async close(): Promise<void> {
    this.#closed.abort();
    await Promise.all([...this.#open.keys()].map((key) => this.#end(key)));
  }
}

/** Maximum pages of a list. Each page may be as large as an answer. */
const maxPages = 16;

/** Minimum delay before a stream reconnects. The server chooses the delay, and 0 would cause a busy loop. */
const minReconnectMs = 500;

/** Maximum model calls, and maximum rounds of model calls, in one tool call. */
const maxSamples = 8;

/** The model requests in a result, if it has no other requests. */
function samplesIn(result: CallToolResult | InputRequiredResult): [string, CreateMessageRequest["params"]][] {
  const requests = Object.entries(isInputRequiredResult(result) ? (result.inputRequests ?? {}) : {});
  const asked: [string, CreateMessageRequest["params"]][] = [];
  for (const [key, request] of requests) {
    if (request.method === "sampling/createMessage") asked.push([key, request.params]);
  }
  return asked.length === requests.length && asked.length <= maxSamples ? asked : [];
}

/** The options that the SDK accepts. */
function sdkOptions({ onElicit: _, ...options }: McpCallOptions = {}): Omit<McpCallOptions, "onElicit"> {
  return options;
}
