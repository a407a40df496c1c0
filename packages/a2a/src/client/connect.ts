import { type Clock, type Ids, type Logger, randomIds, silentLogger } from "../base/index.ts";
import type { AgentCard } from "../model/index.ts";
import {
  type CallContext,
  idempotentSendExtension,
  intercept,
  type Interceptor,
  resumeExtension,
} from "../protocol/index.ts";
import type { ClientBinding, ClientHost, FetchLike, HeadersSource } from "../transport/http/index.ts";
import type { OlderCard } from "./any-card.ts";
import { type CardCache, findCard, noHeaders } from "./card.ts";
import { Client } from "./client.ts";
import { candidatesOf, firstAlive, type InterfaceChoice } from "./interfaces.ts";
import { resilient } from "./resilient.ts";
import { callPolicy, delayAfter, isTransient, pause, type RetryPolicy, streamPolicy } from "./retry.ts";

export interface ConnectOptions extends InterfaceChoice {
  /** Further bindings to choose from, such as `grpcBinding()` of `@parley/grpc`. */
  readonly bindings?: readonly ClientBinding[];
  /** Headers of every request, the card's included: an object, or a function that is asked each time. */
  readonly headers?: HeadersSource;
  /** Default: the runtime's own. */
  readonly fetch?: FetchLike;
  /** Extension URIs that every call asks for (A2A 1.0 §4.6). */
  readonly extensions?: readonly string[];
  /** Stand around every request that goes out, repeated ones and reconnections included; the first is the outermost. */
  readonly interceptors?: readonly Interceptor[];
  /** Where cards are kept for other clients: a `Map`. Default: nowhere. */
  readonly cardCache?: CardCache;
  /** Ends the search for the card. */
  readonly signal?: AbortSignal;
  /** Longest wait for the head of an answer, in milliseconds; a send that waits for its task has none. Default 60 s. */
  readonly connectTimeout?: number | false;
  /** Longest silence within an answer, in milliseconds; a stream is taken up again after it. Default 2 minutes. */
  readonly idleTimeout?: number | false;
  /** The whole of a call, in milliseconds. Default: no limit. */
  readonly timeout?: number | false;
  /** Longest answer, in bytes. Default 64 MiB. */
  readonly maxResponseBytes?: number;
  /** Longest event of a stream, in characters. Default 64 Mi. */
  readonly maxEventChars?: number;
  /** How calls that are safe to repeat are repeated; `false`: never. Default 3 tries. */
  readonly retry?: Partial<RetryPolicy> | false;
  /** How a broken stream is taken up again; `false`: never. Default 10 tries in a row that bring nothing new. */
  readonly reconnect?: Partial<RetryPolicy> | false;
  /** Is told of what is repeated, taken up again, and given up on. Default: nobody is. */
  readonly logger?: Logger;
  readonly clock?: Clock;
  readonly ids?: Ids;
}

/** The bindings and the card reader that a client is built from. */
export interface ClientKit {
  readonly bindings: readonly ClientBinding[];
  decodeCard(value: unknown): AgentCard;
}

/** Unlike the system's, its timers keep a process alive: whoever waits to reconnect has nothing else that does. */
const waitingClock: Clock = {
  now: () => Date.now(),
  elapsed: () => performance.now(),
  after(ms, run) {
    // Longer delays overflow and fire at once.
    const timer = setTimeout(run, Math.min(ms, 2 ** 31 - 1));
    return () => clearTimeout(timer);
  },
};

const mebi = 2 ** 20;

function policy(own: RetryPolicy, given: Partial<RetryPolicy> | false = {}): RetryPolicy {
  return given === false ? { ...own, attempts: 1 } : { ...own, ...given };
}

/** `connect` with bindings of one's choice: a client that speaks one of them carries no other. */
export async function connectWith(
  kit: ClientKit,
  agent: string | URL | AgentCard | OlderCard,
  options: ConnectOptions = {},
): Promise<Client> {
  const { clock = waitingClock, logger = silentLogger } = options;
  const host: ClientHost = {
    // Browsers want their fetch called on nothing but the global object.
    fetch: options.fetch ?? ((url, init) => fetch(url, init)),
    headers: options.headers ?? noHeaders,
    clock,
    limits: {
      connectTimeout: options.connectTimeout ?? 60_000,
      idleTimeout: options.idleTimeout ?? 120_000,
      maxResponseBytes: options.maxResponseBytes ?? 64 * mebi,
      maxEventChars: options.maxEventChars ?? 64 * mebi,
    },
  };
  const calls = policy(callPolicy, options.retry);
  const card =
    typeof agent === "string" || agent instanceof URL
      ? await discover(kit, String(agent), host, calls, options)
      : kit.decodeCard(structuredClone(agent));
  const bindings = [...kit.bindings, ...(options.bindings ?? [])];
  const { service, chosen } = firstAlive(candidatesOf(card, bindings, options, host), logger);
  const declares = (uri: string): boolean => card.capabilities.extensions?.some((one) => one.uri === uri) === true;
  return new Client({
    card,
    service: resilient(intercept(service, options.interceptors ?? []), {
      clock,
      logger,
      calls,
      streams: policy(streamPolicy, options.reconnect),
      canReplay: declares(resumeExtension),
      canResend: declares(idempotentSendExtension),
    }),
    chosen,
    clock,
    ids: options.ids ?? randomIds,
    timeout: options.timeout ?? false,
    extensions: options.extensions ?? [],
  });
}

async function discover(
  kit: ClientKit,
  url: string,
  host: ClientHost,
  calls: RetryPolicy,
  options: ConnectOptions,
): Promise<AgentCard> {
  const source = {
    host,
    cache: options.cardCache ?? new Map(),
    version: options.version ?? kit.bindings[0]?.versions[0] ?? "",
    decode: (value: unknown) => kit.decodeCard(value),
  };
  const context: Pick<CallContext, "signal" | "extensions"> = {
    extensions: [],
    ...(options.signal !== undefined && { signal: options.signal }),
  };
  for (let attempt = 1; ; attempt++) {
    try {
      return await findCard(url, source, context);
    } catch (thrown) {
      const delay = isTransient(thrown) ? delayAfter(calls, attempt, thrown) : undefined;
      if (delay === undefined) throw thrown;
      await pause(host.clock, delay, options.signal);
    }
  }
}
