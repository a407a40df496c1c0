import { isLoopback, type Bytes, type Logger } from "@parley/a2a/internal/base/index";
import type { Authenticator } from "@parley/a2a/internal/auth/index";
import { A2AError, fromBase64 } from "@parley/a2a/internal/model/index";
import type {
  BodyBudget,
  FileReceiver,
  Principal,
  UniversalRequest,
  UniversalResponse,
} from "@parley/a2a/internal/protocol/index";
import type { PublicDocument } from "@parley/a2a/internal/transport/discovery/handler";
import type { PublicEndpoint } from "@parley/a2a/internal/transport/router/router";
import { cannotServe } from "@parley/a2a/internal/transport/server/binding";
import {
  keySetPath,
  mutualTlsScheme,
  standardWebhooksScheme,
  type WebhooksParams,
} from "@parley/a2a/internal/webhooks/names";
import type { Codec } from "@parley/a2a/internal/wire/codec";
import { lazyBlobs, type LazyBlobs } from "../blobs/lazy.ts";
import type { BlobDeps, BlobOptions, BlobSettings } from "../blobs/port.ts";
import type { Authorizations, InTaskOptions, InTaskSettings } from "../intask/index.ts";
import type { Outbox, OutboxHost, PushOptions, PushSettings } from "../push/index.ts";
import { sealKeyring, type SealKeyring } from "../seal/index.ts";

/* The options `push`, `authorization` and `blobs` of a handler, which share keys: their defaults and checks. */

const second = 1000;
const minute = 60 * second;
const hour = 60 * minute;
const week = 7 * 24 * hour;
const mebi = 1 << 20;

/** Short waits for a receiver that restarts, then the waits of Standard Webhooks. About three days in total. */
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

/** A config is a row of its task, and extensions also need rows (`featureBounds.rows`). */
const maxConfigs = 200;

/** The settings of webhooks; `undefined` if they are off. `publicUrl`: the server's, without a slash at its end. */
export function pushSettingsOf(
  option: boolean | PushOptions | undefined,
  publicUrl: string,
  logger: Logger,
): PushSettings | undefined {
  if (option === undefined || option === false) return undefined;
  const options = option === true ? {} : option;
  if (typeof options !== "object" || options === null)
    throw cannotServe("push", "must be true, or an object of options");
  const { mutualTls } = options;
  if (mutualTls !== undefined && typeof mutualTls?.fetch !== "function") {
    throw cannotServe(
      "push.mutualTls",
      "must be a dialer with a client certificate: nodeDialer({ tls: { cert, key } })",
    );
  }
  const isLocal = isLoopback(new URL(publicUrl).hostname);
  const timeout = numberIn("push.timeout", options.timeout, 10 * second, 1, longestTimeout);
  return {
    keys: options.keys === undefined ? ownKey(isLocal, logger) : keysOf(options.keys, "push.keys"),
    issuer: publicUrl,
    net: { allowLoopback: isLocal, maxBytes: 64 << 10, ...options.net, timeout },
    dialer: options.dialer,
    mutualTls,
    challenge: options.challenge ?? false,
    events: eventsOf(options.events),
    bodyBytes: numberIn("push.bodyBytes", options.bodyBytes, 256 << 10, 1),
    configsPerTask: numberIn("push.configsPerTask", options.configsPerTask, 10, 1, maxConfigs),
    retryAfter: retryAfterOf(options.retryAfter),
    timeout,
    concurrency: numberIn("push.concurrency", options.concurrency, 64, 1),
    concurrencyPerOrigin: numberIn("push.concurrencyPerOrigin", options.concurrencyPerOrigin, 8, 1),
  };
}

/** The data on cards about the signatures of webhooks. */
export function webhooksParams({ issuer, mutualTls }: PushSettings): WebhooksParams {
  const schemes = ["Bearer", standardWebhooksScheme, ...(mutualTls === undefined ? [] : [mutualTlsScheme])];
  return { keySet: issuer + keySetPath, issuer, schemes };
}

/** The key set of a server. `basePath`: the prefix of each of its paths. */
export function keySetDocument(basePath: string, { keys }: PushSettings): PublicDocument {
  return {
    path: basePath + keySetPath,
    name: "A key set",
    mediaType: "application/jwk-set+json",
    async load() {
      // Not loaded if webhooks are off.
      const { keySetOf, pushKeyring } = await import("../push/keys.ts");
      return keySetOf(pushKeyring(keys));
    },
  };
}

/** The outbox of webhooks. Its code is loaded only when it starts, and never if webhooks are off. `codecs`: all versions. */
export function pushOutbox(settings: PushSettings, codecs: readonly [Codec, ...Codec[]]): (host: OutboxHost) => Outbox {
  return (host) => {
    let outbox: Outbox | undefined;
    let loading: Promise<void> | undefined;
    let stopped = false;
    let isLoaded = false;
    const load = async (): Promise<void> => {
      const { openOutbox } = await import("../push/outbox.ts");
      outbox = openOutbox(settings, codecs, host);
      if (!stopped) outbox.start();
    };
    return {
      start() {
        loading = load()
          .catch((cause: unknown) => host.logger.error("Failed to load webhooks", { cause }))
          .finally(() => (isLoaded = true));
      },
      poll: () => outbox?.poll(),
      reclaim: () => outbox?.reclaim(),
      get isBusy() {
        return loading !== undefined && (!isLoaded || outbox?.isBusy === true);
      },
      async stop(grace) {
        stopped = true;
        await loading;
        await outbox?.stop(grace);
      },
      // Its first poll finds webhooks that were stored before it was loaded.
      stored: (item) => outbox?.stored(item),
    };
  };
}

const makeKeys =
  "32 random bytes in base64, as `openssl rand -base64 32` prints them. serve() reads them from PARLEY_KEYS";

/** A temporary key that ends with the process. */
function ownKey(isLocal: boolean, logger: Logger): PushSettings["keys"] {
  if (!isLocal) throw cannotServe("push.keys", `is required where publicUrl is not a loopback address: ${makeKeys}`);
  logger.warn(
    "Webhooks use a key that ends with this process. Secrets of webhooks that are registered now cannot be read " +
      `after a restart, or by another process: set push.keys to ${makeKeys}`,
  );
  return [crypto.getRandomValues(new Uint8Array(32))];
}

/** Keys of a server. `name`: the option that has them. */
function keysOf(keys: readonly string[], name: string): PushSettings["keys"] {
  const [first, ...others] = Array.isArray(keys) ? keys.map((key, at) => keyOf(key, `${name}[${at}]`)) : [];
  if (first === undefined) throw cannotServe(name, `must be a list of ${makeKeys}`);
  return [first, ...others];
}

/** The error never contains the key. */
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

function numberIn(name: string, value: unknown, usual: number, min: number, max = Infinity): number {
  if (value === undefined) return usual;
  if (typeof value === "number" && value >= min && value <= max) return value;
  throw cannotServe(name, `must be a number of at least ${min}${max === Infinity ? "" : `, and at most ${max}`}`);
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

/** Path of the callback below the public URL. */
const callbackPath = "/.well-known/parley/authorization";

interface InTaskHost {
  /** The public URL, without a slash at its end. */
  readonly publicUrl: string;
  readonly logger: Logger;
  /** The keys of webhooks, if they are on. */
  readonly pushKeys: readonly [Bytes, ...Bytes[]] | undefined;
  readonly authenticator: Authenticator | undefined;
  authenticate(request: UniversalRequest): Principal | Promise<Principal>;
}

/**
 * The settings of in-task authorization.
 *
 * @throws A2AError `InvalidParams` for keys that are not valid.
 */
export function inTaskSettingsOf(
  { keys, identify }: InTaskOptions = {},
  { publicUrl, logger, pushKeys, authenticator, authenticate }: InTaskHost,
): InTaskSettings {
  const given = keys === undefined ? pushKeys : keysOf(keys, "authorization.keys");
  let own: readonly [Bytes] | undefined;
  return {
    keys: () => given ?? (own ??= [ownInTaskKey(publicUrl, logger)]),
    url: publicUrl + callbackPath,
    ...(identify !== undefined && { identify }),
    async caller(request) {
      const has = authenticator?.hasCredentials?.(request) ?? request.header("authorization") !== undefined;
      return authenticator === undefined || !has ? undefined : authenticate(request);
    },
  };
}

/** A temporary key that ends with the process. It is created when an agent first requests an authorization. */
function ownInTaskKey(publicUrl: string, logger: Logger): Bytes {
  if (!isLoopback(new URL(publicUrl).hostname)) {
    throw new A2AError("InvalidAgentResponse", `turn.authorize() needs a key: set authorization.keys to ${makeKeys}`);
  }
  logger.warn(
    "Requests for authorizations use a key that ends with this process. Links that are open now do not work after a restart: " +
      `set authorization.keys to ${makeKeys}`,
  );
  return crypto.getRandomValues(new Uint8Array(32));
}

/** The callback. `basePath`: the prefix of each path of the server. `bodies`: the memory that all bodies share while they are received. */
export function callbackEndpoint(
  basePath: string,
  bodies: BodyBudget | undefined,
  authorizations: () => Authorizations | undefined,
): PublicEndpoint {
  return {
    path: basePath + callbackPath,
    name: "The callback of authorizations",
    answer: async (request) => (await authorizations()?.callback(request, bodies)) ?? { status: 404, headers: {} },
  };
}

/** Path of links to files below the public URL. */
const filePath = "/.well-known/parley/file";

type BlobHost = Pick<InTaskHost, "publicUrl" | "pushKeys">;

/**
 * Keeps large files outside of the store. `undefined`: disabled.
 *
 * @throws A2AError `InvalidParams` if an option is wrong.
 */
export function blobsOf(
  options: BlobOptions | undefined,
  around: BlobHost,
): ((rooms: BlobDeps) => LazyBlobs) | undefined {
  if (options === undefined) return undefined;
  const settings = settingsOf(options, around);
  return (rooms) => lazyBlobs(settings, rooms);
}

/** Defaults of the options. */
const inlineBytes = 256 << 10;
const messageBytes = 1.5 * 2 ** 30;

const methods = ["put", "get", "delete", "list"] as const;

function settingsOf(options: BlobOptions, { publicUrl, pushKeys }: BlobHost): BlobSettings {
  const store: BlobOptions["store"] | undefined = options?.store;
  const missing = methods.find((name) => typeof store?.[name] !== "function");
  if (store === undefined || missing !== undefined) {
    throw cannotServe("blobs.store", "must be a store of files: fileBlobs() of @parley/node, or s3Blobs()");
  }
  const { links = "store" } = options;
  if (links !== "store" && links !== "server") throw cannotServe("blobs.links", 'must be "store" or "server"');
  const ownLinks = links === "server" || store.link === undefined;
  const keys = options.keys === undefined ? pushKeys : keysOf(options.keys, "blobs.keys");
  if (keys === undefined && ownLinks && !isLoopback(new URL(publicUrl).hostname)) {
    throw cannotServe("blobs.keys", `is required where publicUrl is not a loopback address: ${makeKeys}`);
  }
  // Made on first use: Workers allow no random values before their first request.
  let keyring: SealKeyring | undefined;
  const maxMessage = numberIn("blobs.messageBytes", options.messageBytes, messageBytes, 1);
  return {
    store,
    links,
    keyring: () => (keyring ??= sealKeyring(keys ?? [crypto.getRandomValues(new Uint8Array(32))], "parley files"))(),
    url: publicUrl + filePath,
    inlineBytes: numberIn("blobs.inlineBytes", options.inlineBytes, inlineBytes, 0),
    fileBytes: numberIn("blobs.fileBytes", options.fileBytes, 2 ** 30, 1),
    taskBytes: numberIn("blobs.taskBytes", options.taskBytes, 4 * 2 ** 30, 1),
    uploadBytes: numberIn("blobs.uploadBytes", options.uploadBytes, 200 << 20, 1),
    messageBytes: maxMessage,
    unfinishedBytes: numberIn("blobs.unfinishedBytes", options.unfinishedBytes, 4 * maxMessage, maxMessage),
    linkTime: numberIn("blobs.linkTime", options.linkTime, 15 * minute, 1000, week),
    keepUnused: numberIn("blobs.keepUnused", options.keepUnused, 24 * hour, minute),
    interval: numberIn("blobs.interval", options.interval, hour, 1000),
  };
}

/** The default of `limits.unfinishedBytes` with a blob store, because incoming files use a part of this memory; `undefined` without one. */
export function unfinishedBytesOf(options: BlobOptions | undefined, bodyBytes: number): number | undefined {
  const buffer = options?.store.uploadBytes ?? mebi;
  return options && Math.max(64 * mebi, 4 * bodyBytes, 16 * buffer);
}

/** Extracts large files from messages. `open` begins with a message. */
export function fileReceiver({ store, ...options }: BlobOptions, open: FileReceiver["open"]): FileReceiver {
  return {
    inlineBytes: options.inlineBytes ?? inlineBytes,
    messageBytes: options.messageBytes ?? messageBytes,
    bufferBytes: store.uploadBytes ?? mebi,
    open,
  };
}

/** Answers links to files. `basePath`: the prefix of each path of the server. */
export function fileEndpoint(
  basePath: string,
  file: (request: UniversalRequest) => Promise<UniversalResponse | undefined>,
): PublicEndpoint {
  return {
    path: basePath + filePath,
    name: "The address of files",
    answer: async (request) => (await file(request)) ?? { status: 404, headers: {} },
  };
}
