import { A2AError, type Client, type ConnectOptions, type FetchLike } from "@parley/a2a/internal/client/index";
import type { AgentCard } from "@parley/a2a/internal/model/index";
import type { HostedService } from "@parley/server";
import type { RouteMount } from "@parley/server/internal/handler";
import type { AgentEntry, Binding, ConnectRequest, RawRequest, SchemeLogin } from "./api.ts";
import { enteredBy, signInOf, type InspectorLogins, type LoginPage } from "./logins.ts";
import { recordingCalls, recordingFetch, secretsOf } from "./recording.ts";
import { webhookRoute } from "./webhooks.ts";
import { WireLog } from "./wire-log.ts";

/** Options of `openInspector()`. */
export interface InspectorOptions {
  /**
   * Connects to an agent with the user's credentials. Pass `given` to `connect()`; it records the wire traffic.
   */
  open(url: string, given: OpenOptions): Promise<Client>;
  /** Sends raw requests. Default: the `fetch` of the runtime. */
  readonly fetch?: FetchLike;
  /**
   * Returns headers with the user's credentials for the agent at a URL, for resent requests. The inspector sends them only to the origin of
   * that URL. Default: only `ConnectRequest.headers`.
   */
  credentials?(url: string): Promise<Readonly<Record<string, string>>>;
  /** Stores logins for agents. Default: the user cannot sign in from here. */
  readonly logins?: InspectorLogins;
  /** Serves an agent on the console's own origin, so that the application in the browser can call it. */
  readonly mounts: {
    add(service: HostedService): void;
    /** Replaces the service with the same path. */
    replace(service: HostedService): void;
    remove(path: string): Promise<void>;
  };
}

/** Options that `InspectorOptions.open` must pass to `connect()`. */
export interface OpenOptions extends Pick<ConnectOptions, "fetch" | "interceptors"> {
  /** The binding to use. Absent: the first on the card that answers. */
  readonly binding?: Binding;
  /** Headers of every request. */
  readonly headers: Readonly<Record<string, string>>;
}

/** The connected agents of a console's user, and the log of their wire traffic. */
export interface Inspector {
  /** The log of the wire traffic. */
  readonly log: WireLog;
  /** The connected agents. */
  agents(): readonly AgentEntry[];
  /** Connects to an agent. Throws what `connect()` throws, and `TooManyRequests` when 64 agents are connected. */
  connect(request: ConnectRequest): Promise<AgentEntry>;
  /** Disconnects an agent. */
  disconnect(id: string): Promise<void>;
  /** Reconnects with the current stored logins. */
  reconnect(id: string): Promise<AgentEntry>;
  /** Logs in to an agent and reconnects. A later login for the same agent aborts this one. */
  logIn(id: string, schemes: readonly SchemeLogin[], page: LoginPage, signal: AbortSignal): Promise<void>;
  /** Deletes the logins for an agent and reconnects. */
  logOut(id: string): Promise<AgentEntry>;
  /** Sends a request unchanged. Resolves when the complete response has arrived. */
  send(request: RawRequest): Promise<void>;
  /**
   * A route that receives webhooks and writes them to the log. Accepts requests from anyone who knows its path; checks no signatures.
   *
   * @param path - Hard to guess.
   */
  webhooks(path: string): RouteMount;
}

/** Maximum agents connected at a time. */
const maxAgents = 64;

interface Connected {
  readonly entry: AgentEntry;
  /** The user's input. */
  readonly request: ConnectRequest;
  readonly fetch: FetchLike;
  readonly hosted: HostedService;
}

/** Creates an inspector without connections. */
export function openInspector(options: InspectorOptions): Inspector {
  return new OpenInspector(options);
}

class OpenInspector implements Inspector {
  readonly log: WireLog = new WireLog();
  readonly #options: InspectorOptions;
  readonly #connected = new Map<string, Connected>();
  /** The pending logins, by agent. */
  readonly #pending = new Map<string, AbortController>();
  #last = 0;
  #opening = 0;

  constructor(options: InspectorOptions) {
    this.#options = options;
  }

  agents(): readonly AgentEntry[] {
    return [...this.#connected.values()].map(({ entry }) => entry);
  }

  async connect(request: ConnectRequest): Promise<AgentEntry> {
    if (this.#connected.size + this.#opening >= maxAgents)
      throw new A2AError("TooManyRequests", `${maxAgents} agents are connected; disconnect one first`);
    this.#opening++;
    try {
      const one = await this.#opened(`a${++this.#last}`, request);
      this.#options.mounts.add(one.hosted);
      this.#connected.set(one.entry.id, one);
      return one.entry;
    } finally {
      this.#opening--;
    }
  }

  async reconnect(id: string): Promise<AgentEntry> {
    const next = await this.#opened(id, this.#found(id).request);
    // Throws if the user has disconnected the agent in the meantime.
    this.#found(id);
    this.#options.mounts.replace(next.hosted);
    this.#connected.set(id, next);
    return next.entry;
  }

  async disconnect(id: string): Promise<void> {
    const one = this.#connected.get(id);
    this.#connected.delete(id);
    this.#pending.get(id)?.abort();
    if (one !== undefined) await this.#options.mounts.remove(one.entry.path);
  }

  async logIn(id: string, schemes: readonly SchemeLogin[], page: LoginPage, signal: AbortSignal): Promise<void> {
    const { logins, url, signIn } = this.#loginsOf(id);
    const entered = enteredBy(signIn, schemes, page);
    const own = new AbortController();
    this.#pending.get(id)?.abort(new A2AError("Aborted", "Superseded by another login for this agent"));
    this.#pending.set(id, own);
    try {
      await logins.logIn(url, entered, AbortSignal.any([own.signal, signal]));
    } finally {
      if (this.#pending.get(id) === own) this.#pending.delete(id);
    }
    await this.reconnect(id);
  }

  async logOut(id: string): Promise<AgentEntry> {
    const { logins, url } = this.#loginsOf(id);
    await logins.logOut(url);
    return this.reconnect(id);
  }

  async send({ agent, method, url, headers, body }: RawRequest): Promise<void> {
    const one = this.#found(agent);
    const own = new URL(url).origin === new URL(one.entry.url).origin ? await this.#credentialsOf(one) : {};
    const signal = AbortSignal.timeout(60_000);
    const init = { method, headers: { ...own, ...headers }, signal, redirect: "manual" as const };
    const response = await one.fetch(url, { ...init, ...(body !== undefined && { body }) });
    await discarded(response);
  }

  async #opened(id: string, request: ConnectRequest): Promise<Connected> {
    const { open, logins, fetch = (url, init) => globalThis.fetch(url, init) } = this.#options;
    const { url, binding, headers = {} } = request;
    let secrets = secretsOf(headers);
    let chosen = { url };
    const recording = recordingFetch(this.log, id, fetch, () => secrets);
    const client = await open(url, {
      fetch: recording,
      headers,
      interceptors: binding === "GRPC" ? [recordingCalls(this.log, id, () => chosen)] : [],
      ...(binding !== undefined && { binding }),
    });
    const { card, service } = client;
    secrets = secretsOf(headers, card);
    chosen = client.chosen;
    const { protocolBinding, protocolVersion, tenant } = client.chosen;
    const path = `/agents/${id}`;
    const isTyped = Object.keys(headers).some((name) => name.toLowerCase() === "authorization");
    const stored = isTyped ? undefined : await logins?.of(url, card);
    const entry: AgentEntry = {
      id,
      url,
      path,
      binding: protocolBinding,
      version: protocolVersion,
      card,
      ...(tenant !== undefined && tenant !== "" && { tenant }),
      ...(stored !== undefined && { signIn: signInOf(stored, card) }),
    };
    return { entry, request, fetch: recording, hosted: { service, card: hostedCard(card), path } };
  }

  #found(id: string): Connected {
    const one = this.#connected.get(id);
    if (one === undefined) throw new A2AError("InvalidParams", `No agent ${JSON.stringify(id)} is connected`);
    return one;
  }

  /** The login store, with the agent's URL and sign-in. Throws if the user set credentials when connecting. */
  #loginsOf(id: string) {
    const { url, signIn } = this.#found(id).entry;
    const { logins } = this.#options;
    if (logins === undefined || signIn === undefined)
      throw new A2AError("UnsupportedOperation", "This agent uses the credentials that were set when connecting");
    return { logins, url, signIn };
  }

  webhooks(path: string): RouteMount {
    return webhookRoute(this.log, path);
  }

  /** Names in lower case, so that headers of the request replace them. */
  async #credentialsOf({ entry, request }: Connected): Promise<Readonly<Record<string, string>>> {
    const all = { ...(await this.#options.credentials?.(entry.url)), ...request.headers };
    return Object.fromEntries(Object.entries(all).map(([name, value]) => [name.toLowerCase(), value]));
  }
}

/** Maximum bytes of a response to read only for the log. */
const maxDiscarded = 64 << 20;

/** Reads a body to its end and discards it. Reading it writes it to the log. */
async function discarded({ body }: Response): Promise<void> {
  if (body === null) return;
  const reader: ReadableStreamDefaultReader<Uint8Array> = body.getReader();
  for (let bytes = 0; bytes <= maxDiscarded;) {
    const { done, value } = await reader.read();
    if (done) return;
    bytes += value.byteLength;
  }
  await reader.cancel();
}

/** The card that the console serves: without URLs, signatures and security, which apply only to the agent itself. */
function hostedCard({ name, description, version, skills, capabilities, ...card }: AgentCard): HostedService["card"] {
  const { defaultInputModes, defaultOutputModes } = card;
  const { streaming = false, pushNotifications = false, extensions = [] } = capabilities;
  const hosted = { streaming, pushNotifications, extensions: extensions.map((one) => ({ ...one, required: false })) };
  return { name, description, version, skills, defaultInputModes, defaultOutputModes, capabilities: hosted };
}
