import type { JWTVerifyGetKey } from "jose";
import { isObject } from "../../model/schema.ts";
import { readJson, RemoteDocument } from "../../net/remote-document.ts";
import { endpointOf, issuerMetadata } from "./issuer.ts";
import { checkedUrl, wrongOption, type JwtOptions, type TokenHost } from "./options.ts";

/** The keys of an issuer. */
export interface KeySource {
  /** The keys now. Throws an `A2AError` `Unavailable` where they cannot be had. */
  current(): Promise<JWTVerifyGetKey>;
  /** Keys that were read later than those; `undefined` where there are none yet. */
  again(): Promise<JWTVerifyGetKey> | undefined;
}

/** Most keys of a set. */
const maxKeys = 100;
/** Least time between two readings of keys, in milliseconds. Callers with unknown keys are refused meanwhile. */
const cooldown = 10_000;

/** The keys that options name. */
export function keySource({ issuer, keySet }: Pick<JwtOptions, "issuer" | "keySet">, host: TokenHost): KeySource {
  if (typeof keySet === "object") {
    if (!Array.isArray(keySet.keys) || keySet.keys.length === 0) throw wrongOption("keySet", "must have keys");
    let keys: Promise<JWTVerifyGetKey> | undefined;
    return { current: () => (keys ??= readKeySet(keySet)), again: () => undefined };
  }
  const url = keySet === undefined ? undefined : checkedUrl("keySet", keySet).href;
  const metadata = url === undefined ? issuerMetadata(issuer, host) : undefined;
  return new RemoteDocument({
    name: "The key set of the authorization server",
    url: url ?? issuer,
    clock: host.clock,
    cooldown,
    async load() {
      const address = url ?? endpointOf((await metadata?.current()) ?? {}, "jwks_uri");
      return readKeySet(await readJson(host.fetch, address));
    },
  });
}

async function readKeySet(value: unknown): Promise<JWTVerifyGetKey> {
  if (!isObject(value) || !Array.isArray(value["keys"])) throw new Error("The key set has no list of keys");
  const { createLocalJWKSet } = await import("jose");
  return createLocalJWKSet({ keys: value["keys"].filter(isObject).slice(0, maxKeys) });
}
