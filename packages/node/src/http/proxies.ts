import { BlockList, isIP, isIPv4, isIPv6 } from "node:net";
import type { PeerCertificate } from "@parley/a2a/internal/protocol/index";
import { certificateIn } from "./certificates.ts";

/** The proxies in front of a server, and the headers that they write. */
export interface TrustProxyOptions {
  /**
   * Their addresses: IP addresses, ranges such as `10.0.0.0/8`, or ranges by name: `loopback`, `linklocal`, `uniquelocal` (the
   * private networks of IPv4 and IPv6).
   */
  readonly addresses: readonly string[];
  /**
   * The headers that they write: `X-Forwarded-For` and `X-Forwarded-Proto`, or `Forwarded` (RFC 7239). Only these headers are
   * read, because a proxy passes others on as the client wrote them. Default `x-forwarded`.
   */
  readonly headers?: "x-forwarded" | "forwarded";
  /**
   * The header with the client's certificate, in lower case: `client-cert` (RFC 9440), `x-forwarded-client-cert` (Envoy), or
   * a header with the certificate in PEM or base64, such as `x-ssl-client-cert`. The proxies must check the certificate, and remove
   * this header from requests of clients. Default: no header.
   */
  readonly certificate?: string;
}

/** The addresses of proxies, or all options for them. */
export type TrustProxy = readonly string[] | TrustProxyOptions;

/** The client of a proxy, according to the proxy. */
export interface Client {
  /** The client's IP address, or else the last known proxy's. */
  readonly address: string | undefined;
  /** Whether its connection is encrypted. `undefined`: unknown. */
  readonly secure: boolean | undefined;
  /** The certificate that it has presented. */
  certificate(): PeerCertificate | undefined;
}

/** Maximum number of proxies through which a request is traced. */
const maxProxies = 32;

/** The proxies that a server trusts. */
export class Proxies {
  readonly #addresses: AddressSet;
  readonly #headers: ForwardedHeaders;
  readonly #certificate: string | undefined;

  /** @throws Error for an invalid option. */
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

  /** Whether an address belongs to a trusted proxy. */
  trusts(address: string | undefined): boolean {
    return this.#addresses.has(address);
  }

  /** The client of a connection. `undefined`: `peer` is not a trusted proxy. */
  clientOf(peer: string | undefined, header: HeaderOf): Client | undefined {
    if (peer === undefined || !this.trusts(peer)) return undefined;
    const certificate = this.#certificate;
    return {
      ...this.#senderOf(plainAddress(peer) ?? peer, header),
      certificate: () =>
        certificate === undefined ? undefined : forwardedCertificate(certificate, header(certificate)),
    };
  }

  /** Follows the headers from the nearest proxy back to the first sender that is not a proxy. That sender may have forged the earlier entries. */
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

/* Forwarding headers of proxies. Each proxy appends to them, so they are read from the end. */

/** The entry of one proxy: the sender of the request, and the protocol. */
export interface Hop {
  /** IP address of the sender. `undefined`: missing, or not an address. */
  readonly address: string | undefined;
  /** Whether the sender's connection was encrypted. `undefined`: unknown. */
  readonly secure: boolean | undefined;
}

/** Reads a header of a request by its lower-case name. */
export type HeaderOf = (name: string) => string | undefined;

/** The families of forwarding headers. A proxy writes one of them, and may forward a client's forged headers of the other. */
export type ForwardedHeaders = "x-forwarded" | "forwarded";

/** The entries of the proxies, nearest first. */
export function hopsOf(headers: ForwardedHeaders, header: HeaderOf): Iterable<Hop> {
  return headers === "forwarded" ? hopsOfForwarded(header("forwarded")) : hopsOfLists(header);
}

/** `X-Forwarded-For: client, proxy` and `X-Forwarded-Proto: https`. */
function* hopsOfLists(header: HeaderOf): Iterable<Hop> {
  // Most proxies write a single protocol. In a list, the entry of the nearest proxy counts.
  const protocol = lastOf(header("x-forwarded-proto") ?? "")?.item.toLowerCase();
  const secure = protocol === undefined || protocol === "" ? undefined : protocol === "https";
  for (let last = lastOf(header("x-forwarded-for")); last !== undefined; last = lastOf(last.before)) {
    yield { address: addressIn(last.item), secure };
  }
}

function lastOf(list: string | undefined): { readonly item: string; readonly before: string | undefined } | undefined {
  if (list === undefined) return undefined;
  const comma = list.lastIndexOf(",");
  return { item: list.slice(comma + 1).trim(), before: comma < 0 ? undefined : list.slice(0, comma) };
}

/** `Forwarded: for=client;proto=https, for=proxy` (RFC 7239 §4). */
function* hopsOfForwarded(value: string | undefined): Iterable<Hop> {
  for (let last = lastElement(value); last !== undefined; last = lastElement(last.before)) {
    const pairs = new Map(last.pairs.map(([name, text]) => [name.toLowerCase(), text] as const));
    const protocol = pairs.get("proto")?.toLowerCase();
    yield {
      address: addressIn(pairs.get("for") ?? ""),
      secure: protocol === undefined ? undefined : protocol === "https",
    };
  }
}

/** The last element of a list of pairs, `name=value;name="value"`, and the rest before it. */
export interface Element {
  readonly pairs: readonly (readonly [name: string, value: string])[];
  readonly before: string | undefined;
}

const pair = String.raw`[\w!#$%&'*+.^\`|~-]+=(?:"(?:[^"\\]|\\.)*"|[^\s",;]*)`;
const atEnd = new RegExp(String.raw`(?:^|,)[ \t]*(${pair}(?:[ \t]*;[ \t]*${pair})*)[ \t]*$`);
const eachPair = new RegExp(pair, "g");

/**
 * The last element of a list of pairs, from the nearest proxy. Earlier text of a client, such as an open quote, has no
 * effect. `undefined`: absent or invalid.
 */
export function lastElement(list: string | undefined): Element | undefined {
  const found = list === undefined ? null : atEnd.exec(list);
  if (list === undefined || found === null) return undefined;
  const pairs = (found[1] ?? "").match(eachPair) ?? [];
  return { pairs: pairs.map(split), before: found.index === 0 ? undefined : list.slice(0, found.index) };
}

function split(text: string): readonly [string, string] {
  const at = text.indexOf("=");
  const value = text.slice(at + 1);
  return [text.slice(0, at), value.startsWith('"') ? value.slice(1, -1).replaceAll(/\\(.)/gs, "$1") : value];
}

/** An address with or without a port: `192.0.2.1:4711`, `[2001:db8::1]:4711`. */
function addressIn(text: string): string | undefined {
  const [, bracketed, plain] = /^(?:\[([^\]]*)\]|([\d.]+))(?::\w+)?$/.exec(text) ?? [];
  return plainAddress(bracketed ?? plain ?? text);
}

/** The header of Envoy. Any other header has the certificate itself. */
const envoyHeader = "x-forwarded-client-cert";

/**
 * The client certificate that a proxy passes on in the header `name`. A proxy passes on only certificates that it has checked
 * (RFC 9440 §2.2). `undefined`: absent or unreadable.
 *
 * - `x-forwarded-client-cert`: only the last element counts, because the nearest proxy wrote it.
 * - Any other header: the certificate, as `:base64:` (RFC 9440), as a PEM in percent-encoding (nginx, AWS), or in base64 (Traefik).
 */
function forwardedCertificate(name: string, value: string | undefined): PeerCertificate | undefined {
  if (value === undefined || value === "") return undefined;
  return name === envoyHeader ? fromEnvoy(value) : inText(value);
}

function fromEnvoy(value: string): PeerCertificate | undefined {
  const pairs = lastElement(value)?.pairs ?? [];
  const all = (wanted: string): readonly string[] =>
    pairs.filter(([name, text]) => name.toLowerCase() === wanted && text !== "").map(([, text]) => text);
  const [certificate] = all("cert");
  if (certificate !== undefined) return inText(certificate);
  const [hash] = all("hash");
  if (hash === undefined || !/^[\da-f]{64}$/i.test(hash)) return undefined;
  return {
    authorized: true,
    fingerprint: hash.toLowerCase(),
    // The subject is omitted: it is one text, in an order that depends on the proxy.
    subject: {},
    names: [...all("uri").map((uri) => `URI:${uri}`), ...all("dns").map((dns) => `DNS:${dns}`)],
  };
}

/** Parses a certificate in any form that proxies write. `undefined` for other text. */
function inText(value: string): PeerCertificate | undefined {
  let text = value.trim();
  if (/^:[^:]*:$/.test(text)) text = text.slice(1, -1);
  else if (text.includes("%")) {
    try {
      text = decodeURIComponent(text);
    } catch {
      return undefined;
    }
  }
  const base64 = text.replaceAll(/-----(?:BEGIN|END) CERTIFICATE-----|\s/g, "");
  return /^[A-Za-z\d+/]+={0,2}$/.test(base64) ? certificateIn(Buffer.from(base64, "base64")) : undefined;
}

/** Named ranges. Other servers for Node use the same names. */
const named: Readonly<Record<string, readonly string[]>> = {
  loopback: ["127.0.0.0/8", "::1/128"],
  linklocal: ["169.254.0.0/16", "fe80::/10"],
  uniquelocal: ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7"],
};

/** A set of IP addresses: single ones, and ranges. */
export class AddressSet {
  readonly #list = new BlockList();

  /**
   * @param entries - Addresses (`192.0.2.1`), ranges (`10.0.0.0/8`), or `loopback`, `linklocal` and `uniquelocal`.
   * @param option - The name of the option, for errors.
   * @throws Error for any other entry, and for a range of all addresses.
   */
  constructor(entries: readonly string[], option: string) {
    for (const entry of entries) {
      for (const range of Object.hasOwn(named, entry) ? (named[entry] ?? []) : [entry]) this.#add(range, option);
    }
  }

  /** Whether an address is in the set. Anything but an address is not. */
  has(address: string | undefined): boolean {
    const plain = address === undefined ? undefined : plainAddress(address);
    return plain !== undefined && this.#list.check(plain, isIPv4(plain) ? "ipv4" : "ipv6");
  }

  #add(range: string, option: string): void {
    const [, address = "", digits] = /^([^/]+)(?:\/(\d{1,3}))?$/.exec(range) ?? [];
    const bits = isIPv4(address) ? 32 : 128;
    const length = digits === undefined ? bits : Number(digits);
    if (isIP(address) === 0 || address.includes("%") || length > bits) {
      const wanted = 'an IP address, a range such as "10.0.0.0/8", or "loopback", "linklocal" or "uniquelocal"';
      throw new Error(`\`${option}\` must be ${wanted}; got ${JSON.stringify(range)}`);
    }
    if (length === 0) throw new Error(`\`${option}\` must not allow all addresses; got ${JSON.stringify(range)}`);
    this.#list.addSubnet(address, length, bits === 32 ? "ipv4" : "ipv6");
  }
}

/**
 * The canonical form of an IP address: without a zone, and as IPv4 if it is IPv4 in IPv6. `undefined` if it is not an address.
 */
export function plainAddress(text: string): string | undefined {
  if (isIPv4(text)) return text;
  if (!isIPv6(text)) return undefined;
  const address = new URL(`http://[${text.replace(/%.*/s, "")}]`).hostname.slice(1, -1);
  const [, high, low] = /^::ffff:([\da-f]{1,4}):([\da-f]{1,4})$/.exec(address) ?? [];
  if (high === undefined || low === undefined) return address;
  const bits = [Number.parseInt(high, 16), Number.parseInt(low, 16)];
  return bits.flatMap((group) => [group >> 8, group & 255]).join(".");
}
