import type { JWTVerifyGetKey } from "jose";
import { withoutSlashes } from "../../base/index.ts";
import { isObject } from "../../model/schema.ts";
import { readJson, RemoteDocument } from "../../net/remote-document.ts";
import { checkedUrl, wrongOption, type TokenHost, type JwtOptions } from "./options.ts";

/** The metadata of an authorization server, by the names of RFC 8414 §2. Only `issuer` is checked. */
type IssuerMetadata = Readonly<Record<string, unknown>>;

/**
 * The URLs of an issuer's metadata, in the order in which they are tried: RFC 8414 §3 puts the well-known path before the path of the
 * issuer, OpenID Connect Discovery §4 after it.
 */
function metadataUrls(issuer: string): readonly string[] {
  const { origin, pathname } = new URL(issuer);
  const path = withoutSlashes(pathname);
  const openId = `${origin}${path}/.well-known/openid-configuration`;
  const before = `${origin}/.well-known/oauth-authorization-server${path}`;
  return path === "" ? [openId, before] : [openId, before, `${origin}/.well-known/openid-configuration${path}`];
}

/** The metadata of an issuer, read when it is first needed. */
export function issuerMetadata(issuer: string, { fetch, clock }: TokenHost): RemoteDocument<IssuerMetadata> {
  const urls = metadataUrls(issuer);
  return new RemoteDocument({
    name: "The metadata of the authorization server",
    url: urls[0] ?? issuer,
    clock,
    async load() {
      let problem: unknown;
      for (const url of urls) {
        try {
          return checkedMetadata(await readJson(fetch, url), issuer);
        } catch (thrown) {
          problem ??= thrown;
        }
      }
      throw problem;
    },
  });
}

/** Rejects metadata of another issuer (RFC 8414 §3.3). */
function checkedMetadata(metadata: unknown, issuer: string): IssuerMetadata {
  if (!isObject(metadata)) throw new Error("The metadata is not an object");
  if (metadata["issuer"] !== issuer) throw new Error(`The metadata is of issuer ${String(metadata["issuer"])}`);
  return metadata;
}

/** An endpoint of the metadata. Throws if it is missing or unsafe. */
export function endpointOf(metadata: IssuerMetadata, name: string): string {
  const endpoint = metadata[name];
  if (typeof endpoint !== "string") throw new Error(`The metadata has no ${name}`);
  return checkedUrl(name, endpoint).href;
}

interface KeySource {
  /** The current keys. Throws an `A2AError` `Unavailable` if they cannot be read. */
  current(): Promise<JWTVerifyGetKey>;
  /** Fetches the keys again; `undefined` if they cannot be newer. */
  again(): Promise<JWTVerifyGetKey> | undefined;
}

const maxKeys = 100;
/** Minimum time between two reads of the keys, in milliseconds. In between, callers with unknown keys are rejected. */
const cooldown = 10_000;

/** The keys from the options. */
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
