import { withoutSlashes } from "../../base/index.ts";
import { isObject } from "../../model/schema.ts";
import { readJson, RemoteDocument } from "../../net/remote-document.ts";
import { checkedUrl, type TokenHost } from "./options.ts";

/* An authorization server: its metadata. */

/** The metadata of an authorization server, by the names of RFC 8414 §2. Only `issuer` is checked. */
export type IssuerMetadata = Readonly<Record<string, unknown>>;

/**
 * The addresses of the metadata of an issuer, in the order in which they are asked: RFC 8414 §3 puts the well-known path before the path
 * of the issuer, OpenID Connect Discovery §4 after it.
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

/** Metadata of another issuer must not count as that of this one (RFC 8414 §3.3). */
function checkedMetadata(metadata: unknown, issuer: string): IssuerMetadata {
  if (!isObject(metadata)) throw new Error("The metadata is no object");
  if (metadata["issuer"] !== issuer) throw new Error(`The metadata is that of ${String(metadata["issuer"])}`);
  return metadata;
}

/** An endpoint of the metadata. Throws where there is none, or where it is not safe. */
export function endpointOf(metadata: IssuerMetadata, name: string): string {
  const endpoint = metadata[name];
  if (typeof endpoint !== "string") throw new Error(`The metadata has no ${name}`);
  return checkedUrl(name, endpoint).href;
}
