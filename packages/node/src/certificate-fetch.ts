import type { FetchInit, FetchLike } from "@parley/a2a/internal/client/index";
import { nodeDialer, type DialerOptions } from "./dialer.ts";

/** A client certificate, and what the connections of a client trust. */
export type ClientTls = NonNullable<DialerOptions["tls"]>;

/** A `fetch` that shows a client certificate to some origins, and to no other (mutual TLS, RFC 8705). */
export function certificateFetch(tls: ClientTls, origins: readonly string[]): FetchLike {
  const { cert: _cert, key: _key, passphrase: _passphrase, ...open } = tls;
  const known = nodeDialer({ tls });
  const others = nodeDialer({ tls: open });
  return async (text, init) => {
    const url = new URL(text);
    const dialer = origins.includes(url.origin) ? known : others;
    return dialer.fetch(url, await dialer.resolve(url.hostname.replace(/^\[|\]$/g, "")), dialInit(init));
  };
}

/** The dialer follows no redirect: a certificate is for the origin that the user named. Only gRPC-Web sends bytes. */
function dialInit({ method, headers, body, signal }: FetchInit) {
  if (body !== undefined && typeof body !== "string") throw new TypeError("Bytes cannot be sent with a certificate");
  return { method, headers, signal, ...(body !== undefined && { body }) };
}
