import { type Clock, type Ids, type Logger, randomIds } from "../base/index.ts";
import { A2AError, type AgentCard } from "../model/index.ts";
import { idempotentSendExtension, type Interceptor, resumeExtension } from "../protocol/index.ts";
import {
  aborted,
  type ClientBinding,
  type ClientHost,
  type FetchLike,
  type HeadersSource,
} from "../transport/http/index.ts";
import type { OlderCard } from "./any-card.ts";
import { bounded, follow } from "./bounded.ts";
import { type CardCache, type CardSource, findCard, noHeaders, toUrl } from "./card.ts";
import { Client } from "./client.ts";
import { candidatesOf, firstAlive, type InterfaceChoice } from "./interfaces.ts";
import { resilient } from "./resilient.ts";
import { beforeRetry, callPolicy, isTransient, type RetryPolicy, streamPolicy } from "./retry.ts";

export interface ConnectOptions extends InterfaceChoice {
  /** Further bindings to choose from, such as `grpcBinding()` of `@parley/grpc`. */
  readonly bindings?: readonly ClientBinding[];
  /**
   * Headers of every request, the card's included: an object, or a function that is asked each time. Like those of single
   * calls and of interceptors they go to the origin of the agent's URL alone, whatever addresses its card names.
   */
  readonly headers?: HeadersSource;
  /**
   * Further origins that get the headers, such as `https://api.example.com`. Of an agent that is given as its card: all
   * that do. Default: none beside the one of the agent's URL; of a card that is given, those of its interfaces.
   */
  readonly credentialOrigins?: readonly string[];
  /** Default: the runtime's own. */
  readonly fetch?: FetchLike;
  /** Extension URIs that every call asks for (A2A 1.0 §4.6). */
  readonly extensions?: readonly string[];
  /** Stand around every request that goes out, repeated ones and reconnections included; the first is the outermost. */
  readonly interceptors?: readonly Interceptor[];
  /** Where cards are kept for other clients: a `Map`. Default: nowhere. */
  readonly cardCache?: CardCache;
  /** Ends `connect` itself, the search for the card; calls have signals of their own. */
  readonly signal?: AbortSignal;
  /** Longest wait for the head of an answer, in milliseconds; a send that waits for its task has none. Default 60 s. */
  readonly connectTimeout?: number | false;
  /** Longest silence within an answer, in milliseconds; a stream is taken up again after it. Default 2 minutes. */
  readonly idleTimeout?: number | false;
  /** The whole of a call, in milliseconds, and the whole of `connect` itself. Default: no limit. */
  readonly timeout?: number | false;
  /** Longest answer, in bytes. Default 64 MiB. */
  readonly maxResponseBytes?: number;
  /** Longest event of a stream, in bytes. Default 64 MiB. */
  readonly maxEventBytes?: number;
  /** Longest card, in bytes. Default 1 MiB. The first 100 of its interfaces are looked at. */
  readonly maxCardBytes?: number;
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
  const {
    clock = waitingClock,
    logger,
    connectTimeout = 60_000,
    idleTimeout = 120_000,
    maxResponseBytes = 64 * mebi,
    maxEventBytes = 64 * mebi,
    timeout = false,
    credentialOrigins,
  } = options;
  const host: ClientHost = {
    // Browsers want their fetch called on nothing but the global object.
    fetch: options.fetch ?? ((url, init) => fetch(url, init)),
    headers: options.headers ?? noHeaders,
    clock,
    limits: {
      connectTimeout,
      idleTimeout,
      maxResponseBytes,
      maxEventBytes,
    },
  };
  const calls = policy(callPolicy, options.retry);
  const named = typeof agent === "string" || agent instanceof URL ? toUrl(String(agent)) : undefined;
  const origins = [named, ...(credentialOrigins ?? []).map(toUrl)].map((url) => url?.origin);
  const trusted = (named ?? credentialOrigins) && origins;
  const source: CardSource = {
    host,
    cache: options.cardCache ?? new Map(),
    version: options.version ?? kit.bindings[0]?.versions[0] ?? "",
    maxBytes: options.maxCardBytes ?? mebi,
    decode: (value) => decoded(kit, value),
    address: "",
  };
  const card = named === undefined ? decoded(kit, agent) : await discover(named, source, calls, options);
  const bindings = [...kit.bindings, ...(options.bindings ?? [])];
  const candidates = candidatesOf(card, bindings, options, host, trusted);
  const { service, chosen } = firstAlive(
    candidates,
    host,
    logger,
    `${JSON.stringify(card.name)}${source.address && ` at ${source.address}`}`,
  );
  const declares = (uri: string): boolean => card.capabilities.extensions?.some((one) => one.uri === uri) === true;
  const wrapped = (options.interceptors ?? []).reduceRight((next, wrap) => wrap(next), service);
  return new Client({
    card,
    service: resilient(wrapped, {
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
    timeout,
    extensions: options.extensions ?? [],
  });
}

/** A card in the shape of 1.0, and nothing else goes wrong than an `A2AError`: it may nest deeper than a stack. */
function decoded(kit: ClientKit, value: unknown): AgentCard {
  try {
    return kit.decodeCard(structuredClone(value));
  } catch (cause) {
    if (cause instanceof A2AError) throw cause;
    throw new A2AError("InvalidResponse", `The card cannot be read: ${String(cause)}`, { cause });
  }
}

async function discover(url: URL, source: CardSource, calls: RetryPolicy, options: ConnectOptions): Promise<AgentCard> {
  const { clock } = source.host;
  let said = "";
  const caller = follow(options.signal);
  const { signal, release } = bounded(
    clock,
    caller.own.signal,
    options.timeout ?? false,
    () => `Connecting, last to ${source.address}${said},`,
  );
  const search = async (): Promise<AgentCard> => {
    for (let attempt = 1; ; attempt++) {
      try {
        return await findCard(url, source, signal);
      } catch (thrown) {
        if (!isTransient(thrown)) throw thrown;
        await beforeRetry(clock, calls, attempt, thrown, signal, () => (said = ` (${thrown.message})`));
      }
    }
  };
  try {
    // A source of headers may hang too, and knows no signal.
    return await Promise.race([search(), aborted(signal)]);
  } finally {
    release();
    caller.release();
  }
}
