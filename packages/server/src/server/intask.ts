import type { Authenticator } from "@parley/a2a/internal/auth/index";
import { isLoopback, type Bytes, type Logger } from "@parley/a2a/internal/base/index";
import { A2AError } from "@parley/a2a/internal/model/index";
import type { Authorizations, InTaskOptions, InTaskSettings } from "../intask/index.ts";
import type { BodyBudget, Principal, UniversalRequest } from "@parley/a2a/internal/protocol/index";
import type { PublicEndpoint } from "@parley/a2a/internal/transport/router/router";
import { keysOf, makeKeys } from "./push.ts";

/* The option `authorization` of a handler: its defaults, and the callback (docs/authorization.md). */

/** Path of the callback below the public URL. */
const callbackPath = "/.well-known/parley/authorization";

interface Around {
  /** The public URL, without a slash at its end. */
  readonly publicUrl: string;
  readonly logger: Logger;
  /** The keys of webhooks, where they are on. */
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
  { publicUrl, logger, pushKeys, authenticator, authenticate }: Around,
): InTaskSettings {
  const given = keys === undefined ? pushKeys : keysOf(keys, "authorization.keys");
  let own: readonly [Bytes] | undefined;
  return {
    keys: () => given ?? (own ??= [ownKey(publicUrl, logger)]),
    url: publicUrl + callbackPath,
    ...(identify !== undefined && { identify }),
    async caller(request) {
      const has = authenticator?.hasCredentials?.(request) ?? request.header("authorization") !== undefined;
      return authenticator === undefined || !has ? undefined : authenticate(request);
    },
  };
}

/** A key that ends with the process. It is made when an agent asks for the first time. */
function ownKey(publicUrl: string, logger: Logger): Bytes {
  if (!isLoopback(new URL(publicUrl).hostname)) {
    throw new A2AError("InvalidAgentResponse", `turn.authorize() needs a key: set authorization.keys to ${makeKeys}`);
  }
  logger.warn(
    "Requests for authorizations use a key that ends with this process. Links that are open now do not work after a restart: " +
      `set authorization.keys to ${makeKeys}`,
  );
  return crypto.getRandomValues(new Uint8Array(32));
}

/** The callback. `basePath`: what is before each path of the server. `bodies`: the memory that all bodies share while they are received. */
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
