import { A2AError, type Client, type ConnectOptions, type FetchLike } from "@parley/a2a/internal/client/index";
import type { AgentCard } from "@parley/a2a/internal/model/index";
import type { HostedService } from "@parley/server";
import type { RouteMount } from "@parley/server/internal/handler";
import type { AgentEntry, Binding, ConnectRequest, RawRequest } from "./api.ts";
import { recordingCalls, recordingFetch, secretsOf } from "./recording.ts";
import { webhookRoute } from "./webhooks.ts";
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
  /** Serves an agent on the console's own origin, so that the application in the browser can call it. */
  readonly mounts: {
    add(service: HostedService): void;
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
  /** Sends a request as it is. Resolves once its answer was read to its end. */
  send(request: RawRequest): Promise<void>;
  /**
   * A route that receives webhooks and writes them into the log. It accepts them from whoever knows its path, and checks no signature.
   *
   * @param path - Hard to guess.
   */
  webhooks(path: string): RouteMount;
}

/** Maximum agents that are connected at a time. */
const maxAgents = 64;

interface Connected {
  readonly entry: AgentEntry;
  /** What the user typed. */
  readonly headers: Readonly<Record<string, string>>;
  readonly fetch: FetchLike;
}

/** Makes an inspector, which is connected to nothing. */
export function openInspector(options: InspectorOptions): Inspector {
  const { mounts, fetch = (url, init) => globalThis.fetch(url, init) } = options;
  const log = new WireLog();
  const connected = new Map<string, Connected>();
  let last = 0;
  let opening = 0;

  async function connect(request: ConnectRequest): Promise<AgentEntry> {
    if (connected.size + opening >= maxAgents)
      throw new A2AError("TooManyRequests", `${maxAgents} agents are connected; disconnect one first`);
    opening++;
    try {
      return await opened(request);
    } finally {
      opening--;
    }
  }

  async function opened({ url, binding, headers = {} }: ConnectRequest): Promise<AgentEntry> {
    const id = `a${++last}`;
    let secrets = secretsOf(headers);
    let chosen = { url };
    const recording = recordingFetch(log, id, fetch, () => secrets);
    const client = await options.open(url, {
      fetch: recording,
      headers,
      interceptors: binding === "GRPC" ? [recordingCalls(log, id, () => chosen)] : [],
      ...(binding !== undefined && { binding }),
    });
    const { card, service } = client;
    secrets = secretsOf(headers, card);
    chosen = client.chosen;
    const { protocolBinding, protocolVersion } = client.chosen;
    const path = `/agents/${id}`;
    mounts.add({ service, card: hostedCard(card), path });
    const entry: AgentEntry = { id, url, path, binding: protocolBinding, version: protocolVersion, card };
    connected.set(id, { entry, headers, fetch: recording });
    return entry;
  }

  /** By lower-case names, so that a header of the request replaces one of them. */
  async function credentialsOf({ entry, headers }: Connected): Promise<Readonly<Record<string, string>>> {
    const all = { ...(await options.credentials?.(entry.url)), ...headers };
    return Object.fromEntries(Object.entries(all).map(([name, value]) => [name.toLowerCase(), value]));
  }

  return {
    log,
    webhooks: (path) => webhookRoute(log, path),
    agents: () => [...connected.values()].map(({ entry }) => entry),
    connect,
    async disconnect(id) {
      const found = connected.get(id);
      connected.delete(id);
      if (found !== undefined) await mounts.remove(found.entry.path);
    },
    async send({ agent, method, url, headers, body }) {
      const found = connected.get(agent);
      if (found === undefined) throw new A2AError("InvalidParams", `No agent ${JSON.stringify(agent)} is connected`);
      const own = new URL(url).origin === new URL(found.entry.url).origin ? await credentialsOf(found) : {};
      const signal = AbortSignal.timeout(60_000);
      const init = { method, headers: { ...own, ...headers }, signal, redirect: "manual" as const };
      const response = await found.fetch(url, { ...init, ...(body !== undefined && { body }) });
      await discarded(response);
    },
  };
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
