import { meantBy } from "@parley/a2a/internal/model/options";
import { checkOptions, type OptionNames } from "@parley/a2a/internal/model/index";
import type { CorsOptions } from "@parley/a2a/internal/transport/server/origins";
import type { BlobOptions } from "../blobs/options.ts";
import type { DedupeOptions, LeaseOptions, RetentionOptions, TaskTimes } from "../engine/index.ts";
import type { InTaskOptions } from "../intask/index.ts";
import type { PushOptions } from "../push/index.ts";
import type { SignCards } from "./cards.ts";
import type { HealthOptions } from "./health.ts";
import type { AgentMount, HandlerOptions } from "./options.ts";

/* The names of the options of a handler, for callers without types. */

const names = {
  allowedHosts: 1,
  audit: 1,
  authenticator: 1,
  authorization: 1,
  authorizer: 1,
  basePath: 1,
  bindings: 1,
  blobs: 1,
  cardMaxAge: 1,
  cardReaders: 1,
  clock: 1,
  conversations: 1,
  cors: 1,
  dedupe: 1,
  directReplyWithin: 1,
  extensions: 1,
  facts: 1,
  health: 1,
  ids: 1,
  interceptors: 1,
  keepAlive: 1,
  lease: 1,
  limits: 1,
  logger: 1,
  longPoll: 1,
  mergeTextParts: 1,
  observer: 1,
  ownerOf: 1,
  page: 1,
  pollInterval: 1,
  publicUrl: 1,
  push: 1,
  retention: 1,
  signCards: 1,
  skillOf: 1,
  store: 1,
  strictVersion: 1,
  versions: 1,
  waitUntil: 1,
} satisfies OptionNames<HandlerOptions>;

const taskTimes = {
  terminal: 1,
  completed: 1,
  failed: 1,
  canceled: 1,
  rejected: 1,
  inputRequired: 1,
  authRequired: 1,
} satisfies OptionNames<TaskTimes>;

/** Of options that are objects. `limits` checks its own. */
const nested = {
  authorization: { keys: 1, identify: 1 } satisfies OptionNames<InTaskOptions>,
  blobs: {
    store: 1,
    inlineBytes: 1,
    fileBytes: 1,
    taskBytes: 1,
    uploadBytes: 1,
    messageBytes: 1,
    unfinishedBytes: 1,
    linkTime: 1,
    links: 1,
    keys: 1,
    keepUnused: 1,
    interval: 1,
  } satisfies OptionNames<BlobOptions>,
  cors: { origins: 1, headers: 1, maxAge: 1 } satisfies OptionNames<CorsOptions>,
  dedupe: { window: 1, onConflict: 1, replies: 1, replyBytes: 1 } satisfies OptionNames<DedupeOptions>,
  health: { live: 1, ready: 1 } satisfies OptionNames<HealthOptions>,
  lease: {
    ttl: 1,
    maxAttempts: 1,
    maxDeaths: 1,
    holder: 1,
    isGone: 1,
    wasKilled: 1,
  } satisfies OptionNames<LeaseOptions>,
  push: {
    keys: 1,
    net: 1,
    dialer: 1,
    mutualTls: 1,
    challenge: 1,
    events: 1,
    bodyBytes: 1,
    configsPerTask: 1,
    retryAfter: 1,
    timeout: 1,
    concurrency: 1,
    concurrencyPerOrigin: 1,
  } satisfies OptionNames<PushOptions>,
  retention: { ...taskTimes, agents: 1, replay: 1, interval: 1 } satisfies OptionNames<RetentionOptions>,
  signCards: { keys: 1, retired: 1, reduced: 1 } satisfies OptionNames<SignCards>,
};

const ofNet = {
  protocols: 1,
  ports: 1,
  allowPrivate: 1,
  allowLoopback: 1,
  allow: 1,
  maxBytes: 1,
  timeout: 1,
} satisfies OptionNames<NonNullable<PushOptions["net"]>>;

const ofMount = {
  agent: 1,
  path: 1,
  interfaces: 1,
  cardPaths: 1,
  tenant: 1,
  id: 1,
  extendedCard: 1,
} satisfies OptionNames<AgentMount>;

/**
 * Refuses options that a handler, and the host around it, do not have.
 *
 * @param of - What takes the options: `serve()`.
 * @param own - The names of the host's own options.
 * @throws A2AError `InvalidParams`, which names what was probably meant.
 */
export function checkHandlerOptions(of: string, options: object, own: Readonly<Record<string, 1>> = {}): void {
  checkOptions(of, options, { ...names, ...own }, meantBy);
  const given = options as Readonly<Record<string, unknown>>;
  for (const [name, known] of Object.entries(nested)) checkNested(name, given[name], known);
  const { push, retention } = options as Pick<HandlerOptions, "push" | "retention">;
  if (isObject(push)) checkNested("push.net", push.net, ofNet);
  for (const [id, times] of Object.entries(retention?.agents ?? {}))
    checkNested(`retention.agents[${JSON.stringify(id)}]`, times, taskTimes);
}

function checkNested(of: string, given: unknown, known: Readonly<Record<string, 1>>): void {
  if (isObject(given)) checkOptions(of, given, known, meantBy);
}

function isObject<T>(value: T): value is T & object {
  return typeof value === "object" && value !== null;
}

/** Refuses members that the mount of an agent does not have. */
export function checkMount(mount: object): void {
  checkOptions("a mount", mount, ofMount, meantBy);
}
