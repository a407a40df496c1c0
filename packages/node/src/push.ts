import { resolve } from "node:path";
import process from "node:process";
import type { HandlerOptions } from "@parley/server/internal/handler";
import { isLoopback, type Logger } from "@parley/a2a/internal/base/index";
import type { Store } from "@parley/server/internal/store/index";
import { nodeDialer } from "./dialer.ts";
import type { ServeOptions } from "./serve-options.ts";

type PushOption = HandlerOptions["push"];

/** Where `serve()` finds keys that the options do not have. */
const variable = "PARLEY_KEYS";

/**
 * The option `push` of `serve()` for the handler: with the keys of the environment, and a dialer that pins addresses.
 *
 * @param isLocal - Whether only this machine reaches the server. `publicUrl` alone does not tell it: a server on `0.0.0.0` may have
 * one with `localhost`.
 */
export function pushOn(push: PushOption, isLocal: boolean): PushOption {
  if (push === undefined || push === false) return push;
  const options = push === true ? {} : push;
  const keys = options.keys ?? environmentKeys();
  if (keys === undefined && !isLocal) {
    throw new Error(
      "The server can be reached from other machines, and `push` has no keys, which seal the secrets of webhooks and sign. Set " +
        `\`push.keys\`, or the environment variable ${variable}, to 32 random bytes in base64: openssl rand -base64 32`,
    );
  }
  return {
    dialer: nodeDialer(),
    ...options,
    ...(keys !== undefined && { keys }),
    ...(!isLocal && { net: { allowLoopback: false, ...options.net } }),
  };
}

/** The option with the key in `.parley`, where there is no other and this is no production. Its webhooks survive a restart. */
export async function withDevelopmentKey(
  push: PushOption,
  { publicUrl, developmentKey: isWanted = true }: Pick<ServeOptions, "developmentKey" | "publicUrl">,
  { isLocal, store, logger }: { readonly isLocal: boolean; readonly store: Store; readonly logger: Logger },
): Promise<PushOption> {
  if (typeof push !== "object" || push.keys !== undefined || !isLocal || !store.durable) return push;
  // Behind a proxy of this machine a server is one for others.
  const isPublic = publicUrl !== undefined && !(URL.canParse(publicUrl) && isLoopback(new URL(publicUrl).hostname));
  if (isPublic || !isWanted || process.env["NODE_ENV"] === "production") return push;
  const { CannotMakeKey, developmentKey } = await import("./development-key.ts");
  const folder = resolve(".parley");
  try {
    const key = await developmentKey(folder);
    logger.info(`Webhooks use the development key in ${folder}: keep it out of git, and set ${variable} in production`);
    return { ...push, keys: [key] };
  } catch (cause) {
    if (!(cause instanceof CannotMakeKey)) throw cause;
    logger.warn("Failed to make a development key; webhooks with secrets end with this process", { cause });
    return push;
  }
}

/** The option `authorization` of `serve()` for the handler: with the keys of the environment, unless `push` has keys. */
export function authorizationOn(
  authorization: HandlerOptions["authorization"] = {},
  push: PushOption,
): HandlerOptions["authorization"] {
  const keys = typeof push === "object" && push.keys !== undefined ? undefined : environmentKeys();
  return keys === undefined ? authorization : { keys, ...authorization };
}

/**
 * The option `blobs` of `serve()` for the handler: with the keys of the environment, unless `push` has keys.
 *
 * @param shared - The key of several processes on a loopback address, where there is no other: each answers the links of all.
 */
export function blobsOn(blobs: HandlerOptions["blobs"], push: PushOption, shared?: string): HandlerOptions["blobs"] {
  const keys =
    typeof push === "object" && push.keys !== undefined
      ? undefined
      : (environmentKeys() ?? (shared === undefined ? undefined : [shared]));
  return blobs === undefined || keys === undefined ? blobs : { keys, ...blobs };
}

/** Keys with commas between them, the first one in use. */
function environmentKeys(): readonly string[] | undefined {
  const keys = (process.env[variable] ?? "").split(",").map((key) => key.trim());
  const given = keys.filter((key) => key !== "");
  return given.length === 0 ? undefined : given;
}
