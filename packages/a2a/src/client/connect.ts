import { type Clock, type Ids, type Logger, randomIds } from "../base/index.ts";
import { A2AError, type AgentCard, invalidParams } from "../model/index.ts";
import {
  type AgentService,
  type AnyExtension,
  type CallTarget,
  idempotentSendExtension,
  type Interceptor,
  type Observer,
  resumeExtension,
} from "../protocol/index.ts";
import type { CredentialProvider } from "../credentials/port.ts";
import type {
  ClientBinding,
  ClientHost,
  FetchLike,
  HeadersSource,
  RequestCredentialing,
} from "../transport/client/binding.ts";
import type { CardCheck } from "../cards/port.ts";
import { aborted, bounded } from "../transport/client/signals.ts";
import { type CardCache, type CardKey, type CardSource, findCard, noHeaders, toUrl } from "./card.ts";
import { candidatesOf, firstAlive, type InterfaceChoice } from "./interfaces.ts";
import { resilient } from "./resilient.ts";
import { Backoff, callPolicy, isTransient, type RetryPolicy, streamPolicy } from "./retry.ts";
import type { ClientParts } from "./parts.ts";
import type { OlderCard } from "./versions.ts";

/** Options of `connect()`. */
export interface ConnectOptions<E extends string | AnyExtension = string> extends InterfaceChoice {
  /** Further bindings, such as `grpcBinding()` of `@parley/grpc/client`. Default: JSON-RPC and REST. */
  readonly bindings?: readonly ClientBinding[];
  /**
   * Headers of every request, including the request for the card. Pass an object, or a function that is called for each request. Headers from this
   * option, calls and interceptors are only sent to the origin of the agent's URL, even if its card lists other origins. Default: none.
   */
  readonly headers?: HeadersSource;
  /**
   * Further origins that receive the headers, such as `https://api.example.com`. Default: none. If you pass a card instead of a URL,
   * only these origins get the headers; the default is then the origins of its interfaces. With `trust`, also list the origin of the agent's
   * URL if its server requires credentials for the card, because only then are `credentials` sent with the request for the card.
   */
  readonly credentialOrigins?: readonly string[];
  /**
   * Credentials for the security schemes of the card (A2A 1.0 §7.3), such as `clientCredentials()` of `@parley/a2a/credentials`. The
   * client uses the first requirement of the card that the credentials satisfy. It sends credentials only over TLS or on loopback, and only to the
   * origins that get `headers`. Default: none.
   */
  readonly credentials?: readonly CredentialProvider[];
  /**
   * Checks the signatures of the agent's card and of its extended card (A2A 1.0 §8.4.3). Use `trustCards()` of `@parley/a2a/cards`. Default:
   * signatures are ignored.
   */
  readonly trust?: CardCheck;
  /** Sends the requests. Default: the `fetch` of the runtime. */
  readonly fetch?: FetchLike;
  /**
   * Extensions that every call requests (A2A 1.0 §4.6). A value from `defineExtension()` is requested if the card declares it and all extensions it
   * requires. Then its hooks run, its data is checked, and `event.ext(extension)` returns its values. A URI is always requested. Default: none.
   */
  readonly extensions?: readonly E[];
  /** Interceptors that wrap every request, including retries and reconnections. The first interceptor is the outermost. Default: none. */
  readonly interceptors?: readonly Interceptor[];
  /**
   * Caches cards across clients. A `Map` suffices; `false` disables the cache. Default: clients with the same headers and `fetch` share a
   * cache in memory, of at most 400 cards and 16 MiB, for as long as the server allows (A2A 1.0 §8.6.2).
   * On loopback, a card is revalidated on each use; elsewhere after at most a day.
   */
  readonly cardCache?: CardCache | false;
  /**
   * Notified of requests for the card (`Observer.card`), and of each wait before a retry (`Observer.retry`). The interceptor `observeRequests`
   * reports single requests. Default: none.
   */
  readonly observer?: Observer;
  /** Aborts `connect()` itself, but has no effect on calls. Default: none. */
  readonly signal?: AbortSignal;
  /** Maximum wait for the headers of a response, in milliseconds. Does not apply to a send that waits for its task. Default 60 s. */
  readonly connectTimeout?: number | false;
  /** Maximum pause within a response, in milliseconds. After a longer pause, a stream is reconnected. Default 2 minutes. */
  readonly idleTimeout?: number | false;
  /** Maximum duration of a call, and of `connect()`, in milliseconds. Default: no limit. */
  readonly timeout?: number | false;
  /** Maximum size of a response in bytes. Default 64 MiB. */
  readonly maxResponseBytes?: number;
  /** Maximum size of a stream's event in bytes. Default 64 MiB. */
  readonly maxEventBytes?: number;
  /** Maximum size of a card in bytes. Default 1 MiB. Only the first 100 interfaces of a card are read. */
  readonly maxCardBytes?: number;
  /**
   * Retries of `connect()` itself, and of calls that are safe to repeat. `false` disables them. Default: for 30 s, with delays from 0.2 s to 5 s.
   */
  readonly retry?: Partial<RetryPolicy> | false;
  /** Reconnections of a broken stream. `false` disables them. Default: for 2 minutes without a new event, with delays from 0.25 s to 10 s. */
  readonly reconnect?: Partial<RetryPolicy> | false;
  /** Logs retries, reconnections, and interfaces that do not answer. Default: no log. */
  readonly logger?: Logger;
  /** The clock. Default: the clock of the runtime. */
  readonly clock?: Clock;
  /** Makes the ids of messages. Default: random UUIDs. */
  readonly ids?: Ids;
}

/** The parts from which `connectWith()` builds a client. */
export interface ClientKit {
  /** The bindings that the client speaks. */
  readonly bindings: readonly ClientBinding[];
  /**
   * Reads a card.
   *
   * @throws A2AError `InvalidResponse` if it is not a card.
   */
  decodeCard(value: unknown): AgentCard;
  /** Encodes the card in the form of each version, for signatures of extended cards. Default: the card itself. */
  encodeCard?(card: AgentCard): readonly object[];
  /** The document of an extended card, as received. Default: the card that `encodeCard` returns. */
  documentOf?(card: AgentCard): object | undefined;
}

/** A clock whose timers keep the process alive, because nothing else does while a client waits to reconnect. */
export const waitingClock: Clock = {
  now: () => Date.now(),
  elapsed: () => performance.now(),
  after(ms, run) {
    // A longer delay would overflow, and the timer would fire immediately.
    const timer = setTimeout(run, Math.min(ms, 2 ** 31 - 1));
    return () => clearTimeout(timer);
  },
};

const mebi = 2 ** 20;

function policy(own: RetryPolicy, given: Partial<RetryPolicy> | false = {}): RetryPolicy {
  return given === false ? { ...own, budget: 0 } : { ...own, ...given };
}

/** Hooks for finding a card, used by `connect()`. Clients without them stay small. */
export interface CardHooks {
  /** Adds credentials to requests. */
  readonly credentials?: RequestCredentialing | undefined;
  /** Called when a request for the card failed. Returns whether to retry with credentials. `named` is the user's URL. */
  readonly refused?: (error: unknown, named: URL, source: CardSource) => boolean;
  /** Checks a card before it is used. Returns the card to use. */
  readonly approve?: ((card: AgentCard, named: URL | undefined) => Promise<AgentCard>) | undefined;
  readonly keyOf?: CardKey | undefined;
}

/** Wraps a client's service in interceptors. `named` is the user's URL; `trusted` has the origins that get credentials. */
export type Intercept = (
  service: AgentService,
  interceptors: readonly Interceptor[],
  target: CallTarget,
  named: URL | undefined,
  trusted: readonly (string | undefined)[] | undefined,
) => AgentService;

/** Rejects values that are not client bindings, such as a server's binding of the same name. */
export function checkBindings(bindings: readonly (Partial<ClientBinding> | null | undefined)[]): void {
  for (const binding of bindings) {
    if (typeof binding?.name === "string" && Array.isArray(binding.versions) && binding.open !== undefined) continue;
    const name = binding?.name === undefined ? "" : `, and this ${binding.name} is not one`;
    const description = `must be bindings of a client, such as grpcBinding() of @parley/grpc/client${name}`;
    throw invalidParams([{ field: "bindings", description }]);
  }
}

/** Finds the card, chooses an interface, and makes the parts of a client. `intercept` puts the interceptors around its service. */
export async function assemble(
  kit: ClientKit,
  agent: string | URL | AgentCard | OlderCard,
  options: ConnectOptions,
  intercept: Intercept,
  hooks: CardHooks = {},
): Promise<ClientParts> {
  const { logger, timeout = false, credentialOrigins } = options;
  const host = hostOf(options, hooks.credentials);
  const { clock } = host;
  const calls = policy(callPolicy, options.retry);
  const named = typeof agent === "string" || agent instanceof URL ? toUrl(String(agent)) : undefined;
  const origins = [named, ...(credentialOrigins ?? []).map(toUrl)].map((url) => url?.origin);
  const trusted = (named ?? credentialOrigins) && origins;
  const source: CardSource = {
    host,
    cache: options.cardCache || new Map(),
    keyOf: hooks.keyOf,
    version: options.version ?? kit.bindings[0]?.versions[0] ?? "",
    maxBytes: options.maxCardBytes ?? mebi,
    decode: (value) => decoded(kit, value),
    observer: options.observer,
    address: "",
  };
  const found = named === undefined ? decoded(kit, agent) : await discover(named, source, calls, options, hooks);
  const card = (await hooks.approve?.(found, named)) ?? found;
  const bindings = [...kit.bindings, ...(options.bindings ?? [])];
  const candidates = candidatesOf(card, bindings, options, host, trusted);
  const { service, chosen } = firstAlive(
    candidates,
    host,
    logger,
    `${JSON.stringify(card.name)}${source.address && ` at ${source.address}`}`,
  );
  const declares = (uri: string): boolean => card.capabilities.extensions?.some((one) => one.uri === uri) === true;
  const wrapped = intercept(service, options.interceptors ?? [], { card, chosen }, named, trusted);
  return {
    card,
    service: resilient(wrapped, {
      clock,
      logger,
      observer: options.observer,
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
  };
}

function hostOf(options: ConnectOptions, credentials: RequestCredentialing | undefined): ClientHost {
  const {
    clock = waitingClock,
    connectTimeout = 60_000,
    idleTimeout = 120_000,
    maxResponseBytes = 64 * mebi,
    maxEventBytes = 64 * mebi,
  } = options;
  return {
    // Browsers allow `fetch` only as a method of the global object.
    fetch: options.fetch ?? ((url, init) => fetch(url, init)),
    headers: options.headers ?? noHeaders,
    credentials,
    clock,
    limits: { connectTimeout, idleTimeout, maxResponseBytes, maxEventBytes },
  };
}

/** Decodes a card into the form of 1.0. Every failure becomes an `A2AError`, even for a card nested deeper than the stack allows. */
export function decoded(kit: ClientKit, value: unknown): AgentCard {
  try {
    return kit.decodeCard(structuredClone(value));
  } catch (cause) {
    if (cause instanceof A2AError) throw cause;
    throw new A2AError("InvalidResponse", `The card cannot be read: ${String(cause)}`, { cause });
  }
}

async function discover(
  url: URL,
  source: CardSource,
  calls: RetryPolicy,
  options: ConnectOptions,
  { refused }: CardHooks,
): Promise<AgentCard> {
  const { clock } = source.host;
  const backoff = new Backoff({ ...options, clock }, calls, "AgentCard");
  let said = "";
  const { signal, release } = bounded(
    clock,
    options.signal,
    options.timeout ?? false,
    () => `Connecting, last to ${source.address}${said},`,
  );
  const search = async (): Promise<AgentCard> => {
    for (;;) {
      try {
        return await findCard(url, source, signal);
      } catch (thrown) {
        if (refused?.(thrown, url, source)) continue;
        if (!isTransient(thrown)) throw thrown;
        said = ` (${thrown.message})`;
        await backoff.wait(thrown, signal);
      }
    }
  };
  try {
    // The race is needed because the user's headers function may hang too, and gets no signal.
    return await Promise.race([search(), aborted(signal)]);
  } finally {
    release();
  }
}
