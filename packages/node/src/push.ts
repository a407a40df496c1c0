import process from "node:process";
import type { HandlerOptions } from "@parley/a2a";
import { nodeDialer } from "./dialer.ts";

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
