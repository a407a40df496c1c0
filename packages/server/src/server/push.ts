import { isLoopback, withoutSlashes, type Bytes, type Logger } from "@parley/a2a/internal/base/index";
import { fromBase64 } from "@parley/a2a/internal/model/index";
import type { Outbox, OutboxHost, PushOptions, PushSettings } from "../push/index.ts";
import type { PublicDocument } from "@parley/a2a/internal/transport/discovery/handler";
import { cannotServe } from "@parley/a2a/internal/transport/server/binding";
import {
  keySetPath,
  mutualTlsScheme,
  standardWebhooksScheme,
  type WebhooksParams,
} from "@parley/a2a/internal/webhooks/names";
import type { Codec } from "@parley/a2a/internal/wire/codec";

/* The option `push` of a handler: its defaults, and what is refused at start (docs/decisions/webhooks.md). */

const second = 1000;
const minute = 60 * second;
const hour = 60 * minute;

/** Early attempts, for a receiver that starts again, and then the waits of Standard Webhooks: about three days in all. */
const waits: readonly number[] = [
  second,
  5 * second,
  15 * second,
  60 * second,
  5 * minute,
  30 * minute,
  2 * hour,
  5 * hour,
  10 * hour,
  14 * hour,
  20 * hour,
  24 * hour,
];

/** A request must end before the claim of its row does. */
const longestTimeout = 20 * second;

/** A config is a row of its task, and extensions need rows too (`featureBounds.rows`). */
const maxConfigs = 200;

/** The settings of webhooks; `undefined` where they are off. `publicUrl`: that of the server. */
export function pushSettingsOf(
  option: boolean | PushOptions | undefined,
  publicUrl: URL,
  logger: Logger,
): PushSettings | undefined {
  if (option === undefined || option === false) return undefined;
  const options = option === true ? {} : option;
  if (typeof options !== "object" || options === null)
    throw cannotServe("push", "must be true, or an object of options");
  const { mutualTls } = options;
  if (mutualTls !== undefined && typeof (mutualTls as { readonly fetch?: unknown } | null)?.fetch !== "function") {
    throw cannotServe(
      "push.mutualTls",
      "must be a dialer with a client certificate: nodeDialer({ tls: { cert, key } })",
    );
  }
  const isLocal = isLoopback(publicUrl.hostname);
  const timeout = positive("push.timeout", options.timeout, 10 * second, longestTimeout);
  return {
    keys: options.keys === undefined ? ownKey(isLocal, logger) : keysOf(options.keys, "push.keys"),
    issuer: withoutSlashes(publicUrl.href),
    net: { allowLoopback: isLocal, maxBytes: 64 << 10, ...options.net, timeout },
    dialer: options.dialer,
    mutualTls,
    challenge: options.challenge ?? false,
    events: eventsOf(options.events),
    bodyBytes: positive("push.bodyBytes", options.bodyBytes, 256 << 10),
    configsPerTask: positive("push.configsPerTask", options.configsPerTask, 10, maxConfigs),
    retryAfter: retryAfterOf(options.retryAfter),
    timeout,
    concurrency: positive("push.concurrency", options.concurrency, 64),
    concurrencyPerOrigin: positive("push.concurrencyPerOrigin", options.concurrencyPerOrigin, 8),
  };
}

/** What cards say about the signatures of webhooks. */
export function webhooksParams({ issuer, mutualTls }: PushSettings): WebhooksParams {
  const schemes = ["Bearer", standardWebhooksScheme, ...(mutualTls === undefined ? [] : [mutualTlsScheme])];
  return { keySet: issuer + keySetPath, issuer, schemes };
}

/** The key set of a server. `basePath`: what is before each of its paths. */
export function keySetDocument(basePath: string, { keys }: PushSettings): PublicDocument {
  return {
    path: basePath + keySetPath,
    name: "A key set",
    mediaType: "application/jwk-set+json",
    async load() {
      // Not loaded where webhooks are off.
      const { keySetOf, pushKeyring } = await import("../push/keys.ts");
      return keySetOf(pushKeyring(keys));
    },
  };
}

/** What delivers webhooks. Its code is loaded when it starts, and not where webhooks are off. `codecs`: all versions. */
export function pushOutbox(settings: PushSettings, codecs: readonly [Codec, ...Codec[]]): (host: OutboxHost) => Outbox {
  return (host) => {
    let outbox: Outbox | undefined;
    let loading: Promise<void> | undefined;
    let stopped = false;
    let isLoaded = false;
    const load = async (): Promise<void> => {
      const { openOutbox } = await import("../push/parts.ts");
      outbox = openOutbox(settings, codecs, host);
      if (!stopped) outbox.start();
    };
    return {
      start() {
        loading = load()
          .catch((cause: unknown) => host.logger.error("Webhooks could not be loaded", { cause }))
          .finally(() => (isLoaded = true));
      },
      look: () => outbox?.look(),
      takeOver: () => outbox?.takeOver(),
      get isBusy() {
        return loading !== undefined && (!isLoaded || outbox?.isBusy === true);
      },
      async stop(grace) {
        stopped = true;
        await loading;
        await outbox?.stop(grace);
      },
      // What is stored before it is loaded is found by its first look.
      stored: (item) => outbox?.stored(item),
    };
  };
}

export const makeKeys =
  "32 random bytes in base64, as `openssl rand -base64 32` prints them. serve() reads them from PARLEY_KEYS";

/** A key that ends with the process. */
function ownKey(isLocal: boolean, logger: Logger): PushSettings["keys"] {
  if (!isLocal) throw cannotServe("push.keys", `is required where publicUrl is not a loopback address: ${makeKeys}`);
  logger.warn(
    "Webhooks use a key that ends with this process. Secrets of webhooks that are registered now cannot be read " +
      `after a restart, or by another process: set push.keys to ${makeKeys}`,
  );
  return [crypto.getRandomValues(new Uint8Array(32))];
}

/** Keys of a server. `name`: the option that has them. */
export function keysOf(keys: readonly string[], name: string): PushSettings["keys"] {
  const [first, ...others] = Array.isArray(keys) ? keys.map((key, at) => keyOf(key, `${name}[${at}]`)) : [];
  if (first === undefined) throw cannotServe(name, `must be a list of ${makeKeys}`);
  return [first, ...others];
}

/** The error never has the key. */
function keyOf(text: unknown, name: string): Bytes {
  const bytes = typeof text === "string" ? decoded(text.trim()) : undefined;
  if (bytes?.length !== 32) throw cannotServe(name, `must be ${makeKeys}`);
  return bytes;
}

function decoded(text: string): Bytes | undefined {
  try {
    return fromBase64(text);
  } catch {
    return undefined;
  }
}

function positive(name: string, value: unknown, usual: number, most = Infinity): number {
  if (value === undefined) return usual;
  if (typeof value === "number" && value >= 1 && value <= most) return value;
  throw cannotServe(name, `must be a number of at least 1${most === Infinity ? "" : `, and at most ${most}`}`);
}

function retryAfterOf(value: unknown = waits): readonly number[] {
  const isWait = (each: unknown): each is number => typeof each === "number" && each >= 0;
  if (Array.isArray(value) && value.every(isWait)) return value;
  throw cannotServe("push.retryAfter", "must be a list of milliseconds");
}

function eventsOf(events: PushOptions["events"] = "changes"): PushSettings["events"] {
  if (events === "changes" || events === "all" || typeof events === "function") return events;
  throw cannotServe("push.events", 'must be "changes", "all" or a function');
}
