import ipaddr from "ipaddr.js";

/** The kind of an IP address, by the IANA special-purpose registries (RFC 6890). */
export type AddressKind =
  | "global"
  | "loopback"
  | "private"
  | "link-local"
  | "unspecified"
  | "multicast"
  | "documentation"
  | "reserved";

type Address = ipaddr.IPv4 | ipaddr.IPv6;

/** The kind of each named range of `ipaddr.js`. All other ranges are reserved. */
const kinds: Readonly<Record<string, AddressKind>> = {
  unicast: "global",
  amt: "global",
  as112: "global",
  as112v6: "global",
  loopback: "loopback",
  private: "private",
  carrierGradeNat: "private",
  uniqueLocal: "private",
  deprecatedSiteLocal: "private",
  linkLocal: "link-local",
  unspecified: "unspecified",
  multicast: "multicast",
};

/** Ranges whose kind differs from that in `ipaddr.js`. */
const exceptions = {
  // A public address that is an internal service on every machine of Azure.
  "link-local": [ipaddr.parseCIDR("168.63.129.16/32")],
  documentation: ["192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", "2001:db8::/32", "3fff::/20"].map((range) =>
    ipaddr.parseCIDR(range),
  ),
  // Protocol assignments, including Teredo and benchmarks (RFC 2928).
  reserved: [ipaddr.parseCIDR("2001::/23")],
} satisfies Partial<Record<AddressKind, [Address, number][]>>;

/** The allocated part of IPv6. The rest may be used for anything later. */
const allocatedIPv6 = ipaddr.IPv6.parseCIDR("2000::/3");

/** Ranges whose last four bytes are the IPv4 address that a connection reaches: mapped (RFC 4291) and NAT64 (RFC 6052). */
const embeddedIPv4 = [ipaddr.IPv6.parseCIDR("::ffff:0:0/96"), ipaddr.IPv6.parseCIDR("64:ff9b::/96")];

/**
 * The kind of an IP address; `undefined` if the text is not an IP address. Reads the forms of `URL` and resolvers: IPv4 as four decimal
 * numbers, and IPv6 in any form without brackets.
 *
 * @example
 * ```ts
 * addressKind("127.0.0.1"); // "loopback"
 * addressKind("8.8.8.8"); // "global"
 * ```
 */
export function addressKind(text: string): AddressKind | undefined {
  if (ipaddr.IPv4.isValidFourPartDecimal(text)) return kindOf(ipaddr.IPv4.parse(text));
  const address = parseIPv6(text);
  return address && kindOfIPv6(address);
}

/**
 * Parses with `URL`, because `ipaddr.js` parses `::8.8.8.8`, the form in which resolvers write IPv4-compatible addresses, as
 * a mapped address. Omits a zone, which names a network interface.
 */
function parseIPv6(text: string): ipaddr.IPv6 | undefined {
  const [, digits = ""] = /^([\da-f:.]+)(?:%.*)?$/i.exec(text) ?? [];
  const url = `http://[${digits}]`;
  return URL.canParse(url) ? ipaddr.IPv6.parse(new URL(url).hostname.slice(1, -1)) : undefined;
}

function kindOf(address: Address): AddressKind {
  const exception = ipaddr.subnetMatch(address, exceptions, "none");
  return exception === "none" ? (kinds[address.range()] ?? "reserved") : (exception as AddressKind);
}

function kindOfIPv6(address: ipaddr.IPv6): AddressKind {
  if (embeddedIPv4.some((range) => address.match(range))) {
    return kindOf(new ipaddr.IPv4(address.toByteArray().slice(12)));
  }
  const kind = kindOf(address);
  return kind === "global" && !address.match(allocatedIPv6) ? "reserved" : kind;
}
