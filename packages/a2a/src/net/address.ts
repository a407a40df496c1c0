/**
 * What an IP address is for, after the IANA special-purpose registries (RFC 6890). A table of our own and not a
 * library's: the question here is only "may a stranger make us call it", its answer must be no for whatever the table
 * does not know, and it has to fit beside a client in a browser.
 */

export type AddressKind =
  "global" | "loopback" | "private" | "link-local" | "unspecified" | "multicast" | "documentation" | "reserved";

/** Bytes of an address: 4 or 16. */
type Bytes = readonly number[];

interface Range {
  readonly bytes: Bytes;
  readonly bits: number;
  readonly kind: AddressKind;
}

function range(cidr: string, kind: AddressKind): Range {
  const [address = "", bits] = cidr.split("/");
  return { bytes: parseAddress(address) ?? [], bits: Number(bits), kind };
}

const v4: readonly Range[] = [
  range("0.0.0.0/8", "unspecified"),
  range("10.0.0.0/8", "private"),
  range("100.64.0.0/10", "private"), // shared by the customers of a carrier (RFC 6598)
  range("127.0.0.0/8", "loopback"),
  range("168.63.129.16/32", "link-local"), // a public number that one cloud answers inside each of its machines
  range("169.254.0.0/16", "link-local"), // where clouds answer with credentials
  range("172.16.0.0/12", "private"),
  range("192.0.0.0/24", "reserved"),
  range("192.0.2.0/24", "documentation"),
  range("192.88.99.0/24", "reserved"), // relays to 6to4 (RFC 7526)
  range("192.168.0.0/16", "private"),
  range("198.18.0.0/15", "reserved"), // benchmarks (RFC 2544)
  range("198.51.100.0/24", "documentation"),
  range("203.0.113.0/24", "documentation"),
  range("224.0.0.0/4", "multicast"),
  range("240.0.0.0/4", "reserved"),
];

const v6: readonly Range[] = [
  range("::/128", "unspecified"),
  range("::1/128", "loopback"),
  range("fc00::/7", "private"),
  range("fe80::/10", "link-local"),
  range("fec0::/10", "private"),
  range("ff00::/8", "multicast"),
  range("2001::/23", "reserved"), // protocols, Teredo and benchmarks among them (RFC 2928)
  range("2001:db8::/32", "documentation"),
  range("2002::/16", "reserved"), // 6to4 leads to any IPv4 address (RFC 7526)
  range("3fff::/20", "documentation"),
  range("2000::/3", "global"), // all that is given out; after its exceptions
];

/** Ranges whose last four bytes are an IPv4 address that is really meant: mapped (RFC 4291), and as NAT64 makes them (RFC 6052). */
const embedding: readonly Range[] = [range("::ffff:0:0/96", "global"), range("64:ff9b::/96", "global")];

/** What an address is for; `undefined` where the text is none. */
export function addressKind(address: string): AddressKind | undefined {
  const bytes = parseAddress(address);
  return bytes === undefined ? undefined : kindOf(bytes);
}

function kindOf(bytes: Bytes): AddressKind {
  const within = (candidate: Range): boolean => contains(candidate, bytes);
  if (bytes.length === 4) return v4.find(within)?.kind ?? "global";
  if (embedding.some(within)) return kindOf(bytes.slice(12));
  return v6.find(within)?.kind ?? "reserved";
}

function contains({ bytes: prefix, bits }: Range, bytes: Bytes): boolean {
  const whole = bits >> 3;
  for (let index = 0; index < whole; index++) if (prefix[index] !== bytes[index]) return false;
  const mask = (0xff00 >> (bits & 7)) & 0xff;
  return mask === 0 || ((prefix[whole] ?? 0) & mask) === ((bytes[whole] ?? 0) & mask);
}

/** Addresses as `URL` and resolvers write them: dotted decimals, or IPv6 in any of its spellings, without brackets. */
function parseAddress(text: string): Bytes | undefined {
  return text.includes(":") ? parseV6(text) : parseV4(text);
}

function parseV4(text: string): Bytes | undefined {
  const bytes = text.split(".").map((part) => (/^\d{1,3}$/.test(part) ? Number(part) : NaN));
  return bytes.length === 4 && bytes.every((byte) => byte <= 255) ? bytes : undefined;
}

function parseV6(text: string): Bytes | undefined {
  // A zone says by which interface, not where to.
  const [head = "", tail, ...more] = (text.split("%")[0] ?? "").split("::");
  if (more.length > 0) return undefined;
  const before = groups(head, tail === undefined);
  const after = groups(tail ?? "", true);
  if (before === undefined || after === undefined) return undefined;
  const missing = 16 - before.length - after.length;
  if (tail === undefined ? missing !== 0 : missing < 2) return undefined;
  return [...before, ...Array.from({ length: missing }, () => 0), ...after];
}

/** Groups of four digits; at the end of an address the last two may be an IPv4 address. */
function groups(text: string, atEnd: boolean): Bytes | undefined {
  if (text === "") return [];
  const bytes: number[] = [];
  const parts = text.split(":");
  for (const [index, part] of parts.entries()) {
    if (/^[\da-f]{1,4}$/i.test(part)) {
      const group = parseInt(part, 16);
      bytes.push(group >> 8, group & 0xff);
    } else {
      const last = atEnd && index === parts.length - 1 ? parseV4(part) : undefined;
      if (last === undefined) return undefined;
      bytes.push(...last);
    }
  }
  return bytes;
}
