import type { PeerCertificate } from "@parley/a2a/internal/protocol/index";
import { AddressSet, plainAddress } from "./addresses.ts";
import { forwardedCertificate } from "./forwarded-certificate.ts";
import { hopsOf, type ForwardedHeaders, type HeaderOf } from "./forwarded.ts";

/** The proxies in front of a server, and what they write into requests. */
export interface TrustProxyOptions {
  /**
   * Their addresses: IP addresses, ranges such as `10.0.0.0/8`, or ranges by name: `loopback`, `linklocal`, `uniquelocal` (the
   * private networks of IPv4 and IPv6).
   */
  readonly addresses: readonly string[];
  /**
   * The headers that they write: `X-Forwarded-For` and `X-Forwarded-Proto`, or `Forwarded` (RFC 7239). Only these are read, because a
   * proxy passes the others on as the client wrote them. Default `x-forwarded`.
   */
  readonly headers?: "x-forwarded" | "forwarded";
  /**
   * The header in which they pass on the certificate of a client, in lower case: `client-cert` (RFC 9440),
   * `x-forwarded-client-cert` (Envoy), or one with the certificate in PEM or base64, such as `x-ssl-client-cert`. They must check
   * the certificate, and remove this header from requests of clients. Default: none is read.
   */
  readonly certificate?: string;
}

/** The addresses of proxies, or all that is known of them. */
export type TrustProxy = readonly string[] | TrustProxyOptions;

/** The client of a proxy, as the proxy tells. */
export interface Client {
  /** Its IP address. That of the last proxy which tells one, where no client is told. */
  readonly address: string | undefined;
  /** Whether its connection is encrypted. `undefined`: the proxy does not tell. */
  readonly secure: boolean | undefined;
  /** The certificate that it has shown. */
  certificate(): PeerCertificate | undefined;
}

/** Most proxies that a request is followed through. */
const maxProxies = 32;

/** The proxies that a server trusts. */
export class Proxies {
  readonly #addresses: AddressSet;
  readonly #headers: ForwardedHeaders;
  readonly #certificate: string | undefined;

  /** @throws Error where an option is not valid. */
  constructor(option: TrustProxy) {
    const {
      addresses,
      headers = "x-forwarded",
      certificate,
    }: TrustProxyOptions = isList(option) ? { addresses: option } : option;
    if (headers !== "x-forwarded" && headers !== "forwarded") {
      throw new Error(`\`trustProxy.headers\` must be "x-forwarded" or "forwarded", not ${JSON.stringify(headers)}`);
    }
    if (!Array.isArray(addresses)) throw new Error('`trustProxy` must be a list of addresses, such as ["10.0.0.2"]');
    this.#addresses = new AddressSet(addresses, "trustProxy");
    this.#headers = headers;
    this.#certificate = certificate?.toLowerCase();
  }

  /** Whether an address is that of a proxy. */
  trusts(address: string | undefined): boolean {
    return this.#addresses.has(address);
  }

  /** What is known of the client of a connection. `undefined`: its other side, `peer`, is no proxy. */
  clientOf(peer: string | undefined, header: HeaderOf): Client | undefined {
    if (peer === undefined || !this.trusts(peer)) return undefined;
    const certificate = this.#certificate;
    return {
      ...this.#senderOf(plainAddress(peer) ?? peer, header),
      certificate: () =>
        certificate === undefined ? undefined : forwardedCertificate(certificate, header(certificate)),
    };
  }

  /** Follows the headers from the nearest proxy to the first sender that is none. What is before that, the sender may have written. */
  #senderOf(peer: string, header: HeaderOf): Pick<Client, "address" | "secure"> {
    let address = peer;
    let secure: boolean | undefined;
    let count = 0;
    for (const hop of hopsOf(this.#headers, header)) {
      secure = hop.secure;
      if (hop.address === undefined) break;
      address = hop.address;
      if (!this.trusts(address) || ++count === maxProxies) break;
    }
    return { address, secure };
  }
}

function isList(option: TrustProxy): option is readonly string[] {
  return Array.isArray(option);
}
