import { meantBy } from "@parley/a2a/internal/base/nearest";
import { checkOptions, type OptionNames } from "@parley/a2a/internal/model/index";
import type { CorsOptions } from "@parley/a2a/internal/transport/server/cors";
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

const ofCors = { origins: 1, headers: 1, maxAge: 1 } satisfies OptionNames<CorsOptions>;

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
  const { cors } = options as Pick<HandlerOptions, "cors">;
  if (typeof cors === "object") checkOptions("cors", cors, ofCors, meantBy);
}

/** Refuses members that the mount of an agent does not have. */
export function checkMount(mount: object): void {
  checkOptions("a mount", mount, ofMount, meantBy);
}
