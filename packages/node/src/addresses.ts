import { BlockList, isIP, isIPv4, isIPv6 } from "node:net";

/** Ranges by the names that other servers for Node have for them. */
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
   * @param option - The option that they come from, for errors.
   * @throws Error for an entry that is none of these, and for a range of all addresses.
   */
  constructor(entries: readonly string[], option: string) {
    for (const entry of entries) {
      for (const range of Object.hasOwn(named, entry) ? (named[entry] ?? []) : [entry]) this.#add(range, option);
    }
  }

  /** Whether an address is in the set. What is no address is not. */
  has(address: string | undefined): boolean {
    const plain = address === undefined ? undefined : plainAddress(address);
    return plain !== undefined && this.#list.check(plain, isIPv4(plain) ? "ipv4" : "ipv6");
  }

  #add(range: string, option: string): void {
    const [, address = "", digits] = /^([^/]+)(?:\/(\d{1,3}))?$/.exec(range) ?? [];
    const most = isIPv4(address) ? 32 : 128;
    const length = digits === undefined ? most : Number(digits);
    if (isIP(address) === 0 || address.includes("%") || length > most) {
      const wanted = 'an IP address, a range such as "10.0.0.0/8", or "loopback", "linklocal" or "uniquelocal"';
      throw new Error(`\`${option}\` has ${JSON.stringify(range)}, which is not ${wanted}`);
    }
    if (length === 0) throw new Error(`\`${option}\` has ${JSON.stringify(range)}, which are all addresses`);
    this.#list.addSubnet(address, length, most === 32 ? "ipv4" : "ipv6");
  }
}

/**
 * An IP address in its one form: without a zone, and as IPv4 where it is IPv4 in IPv6. `undefined` for a text that is no address.
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
