import { A2AError, type Client, type ConnectOptions, type FetchLike } from "@parley/a2a/internal/client/index";
import type { AgentCard } from "@parley/a2a/internal/model/index";
import type { HostedService } from "@parley/server";
import type { AgentEntry, Binding, ConnectRequest, RawRequest, SchemeLogin } from "./api.ts";
import { enteredBy, signInOf, type InspectorLogins, type LoginPage } from "./logins.ts";
import { recordingCalls, recordingFetch, secretsOf } from "./recording.ts";
import { WireLog } from "./wire-log.ts";

/** How an inspector reaches agents. */
export interface InspectorOptions {
  /**
   * Connects to an agent, with the credentials that the user has for it. Pass `given` to `connect()`: it records what goes over the wire.
   */
  open(url: string, given: OpenOptions): Promise<Client>;
  /** Sends requests as they are. Default: the `fetch` of the runtime. */
  readonly fetch?: FetchLike;
  /**
   * Headers with the credentials that the user has for the agent of a URL, for requests that are sent again. They go to the origin of that
   * URL alone. Default: only those of `ConnectRequest.headers`.
   */
  credentials?(url: string): Promise<Readonly<Record<string, string>>>;
  /** Stores logins for agents. Default: the user cannot sign in from here. */
  readonly logins?: InspectorLogins;
  /** Serves an agent on the console's own origin, so that the application in the browser can call it. */
  readonly mounts: {
    add(service: HostedService): void;
    /** Serves it in place of the one with the same path. */
    replace(service: HostedService): void;
    remove(path: string): Promise<void>;
  };
}

/** What `InspectorOptions.open` has to pass to `connect()`. */
export interface OpenOptions extends Pick<ConnectOptions, "fetch" | "interceptors"> {
  /** The binding to use. Absent: the first of the card that answers. */
  readonly binding?: Binding;
  /** Headers of every request. */
  readonly headers: Readonly<Record<string, string>>;
}

/** Agents that the user of a console has connected to, and what went over the wire to them. */
export interface Inspector {
  /** What went over the wire. */
  readonly log: WireLog;
  /** The agents that are connected. */
  agents(): readonly AgentEntry[];
  /** Connects to an agent. Throws what `connect()` throws, and `TooManyRequests` when 64 agents are connected. */
  connect(request: ConnectRequest): Promise<AgentEntry>;
  /** Forgets an agent. */
  disconnect(id: string): Promise<void>;
  /** Connects again, with the logins that are stored now. */
  reconnect(id: string): Promise<AgentEntry>;
  /** Logs in to an agent and connects again. Another login for the same agent aborts this one. */
  logIn(id: string, schemes: readonly SchemeLogin[], page: LoginPage, signal: AbortSignal): Promise<void>;
  /** Deletes the logins for an agent, and connects again. */
  logOut(id: string): Promise<AgentEntry>;
  /** Sends a request as it is. Resolves once its answer was read to its end. */
  send(request: RawRequest): Promise<void>;
}

/** Maximum agents that are connected at a time. */
const maxAgents = 64;

interface Connected {
  readonly entry: AgentEntry;
  /** What the user typed. */
  readonly request: ConnectRequest;
  readonly fetch: FetchLike;
  readonly hosted: HostedService;
}

/** Makes an inspector, which is connected to nothing. */
export function openInspector(options: InspectorOptions): Inspector {
  return new OpenInspector(options);
}

class OpenInspector implements Inspector {
  readonly log: WireLog = new WireLog();
  readonly #options: InspectorOptions;
  readonly #connected = new Map<string, Connected>();
  /** The logins that have not ended, by agent. */
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
    // It may have been disconnected meanwhile.
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
    this.#pending.get(id)?.abort(new A2AError("Aborted", "Another login for this agent began"));
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

  /** What signs in to an agent. */
  #loginsOf(id: string) {
    const { url, signIn } = this.#found(id).entry;
    const { logins } = this.#options;
    if (logins === undefined || signIn === undefined)
      throw new A2AError("UnsupportedOperation", "The credentials for this agent came with the connection");
    return { logins, url, signIn };
  }

  /** By lower-case names, so that a header of the request replaces one of them. */
  async #credentialsOf({ entry, request }: Connected): Promise<Readonly<Record<string, string>>> {
    const all = { ...(await this.#options.credentials?.(entry.url)), ...request.headers };
    return Object.fromEntries(Object.entries(all).map(([name, value]) => [name.toLowerCase(), value]));
  }
}

/** Maximum bytes of an answer that is read for the log alone. */
const maxDiscarded = 64 << 20;

/** Reads a body to its end, which writes it into the log, and keeps nothing of it. */
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

/** The card as the console serves it: without addresses, signatures and security, which are those of the agent itself. */
function hostedCard({ name, description, version, skills, capabilities, ...card }: AgentCard): HostedService["card"] {
  const { defaultInputModes, defaultOutputModes } = card;
  const { streaming = false, pushNotifications = false, extensions = [] } = capabilities;
  const hosted = { streaming, pushNotifications, extensions: extensions.map((one) => ({ ...one, required: false })) };
  return { name, description, version, skills, defaultInputModes, defaultOutputModes, capabilities: hosted };
}
