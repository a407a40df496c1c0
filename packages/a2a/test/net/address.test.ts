import { BlockList, isIPv4 } from "node:net";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { addressKind } from "../../src/net/address.ts";

describe("addressKind", () => {
  it.each([
    ["8.8.8.8", "global"],
    ["1.1.1.1", "global"],
    ["0.0.0.0", "unspecified"],
    ["0.1.2.3", "unspecified"],
    ["10.0.0.1", "private"],
    ["100.63.255.255", "global"],
    ["100.64.0.0", "private"],
    ["100.100.100.200", "private"],
    ["100.127.255.255", "private"],
    ["100.128.0.0", "global"],
    ["127.0.0.1", "loopback"],
    ["127.255.255.254", "loopback"],
    ["168.63.129.16", "link-local"],
    ["168.63.129.17", "global"],
    ["169.254.169.254", "link-local"],
    ["172.15.255.255", "global"],
    ["172.16.0.0", "private"],
    ["172.31.255.255", "private"],
    ["172.32.0.0", "global"],
    ["192.0.0.192", "reserved"],
    ["192.0.2.1", "documentation"],
    ["192.88.99.1", "reserved"],
    ["192.168.1.1", "private"],
    ["198.17.255.255", "global"],
    ["198.18.0.1", "reserved"],
    ["198.19.255.255", "reserved"],
    ["198.51.100.7", "documentation"],
    ["203.0.113.7", "documentation"],
    ["224.0.0.1", "multicast"],
    ["239.255.255.255", "multicast"],
    ["240.0.0.1", "reserved"],
    ["255.255.255.255", "reserved"],
  ])("the kind of IPv4 %s is %s", (address, kind) => {
    expect(addressKind(address)).toBe(kind);
  });

  it.each([
    ["2606:4700:4700::1111", "global"],
    ["2a00:1450:4001:81b::200e", "global"],
    ["::", "unspecified"],
    ["::1", "loopback"],
    ["0:0:0:0:0:0:0:1", "loopback"],
    ["fc00::1", "private"],
    ["fd00:ec2::254", "private"],
    ["fe80::1", "link-local"],
    ["fe80::1%eth0", "link-local"],
    ["febf::1", "link-local"],
    ["fec0::1", "private"],
    ["ff02::1", "multicast"],
    ["2001:db8::1", "documentation"],
    ["3fff:fff::1", "documentation"],
    ["2001:2::1", "reserved"],
    ["2001:10::1", "reserved"],
    ["100::1", "reserved"],
    ["5f00::1", "reserved"],
    ["4000::1", "reserved"],
    ["64:ff9b:1::808:808", "reserved"],
  ])("the kind of IPv6 %s is %s", (address, kind) => {
    expect(addressKind(address)).toBe(kind);
  });

  it.each([
    ["mapped", "::ffff:127.0.0.1", "loopback"],
    ["mapped, in hexadecimal", "::ffff:a9fe:a9fe", "link-local"],
    ["mapped, spelled out", "0:0:0:0:0:ffff:10.0.0.1", "private"],
    ["mapped and public", "::ffff:8.8.8.8", "global"],
    ["compatible", "::127.0.0.1", "reserved"],
    ["compatible and public", "::8.8.8.8", "reserved"],
    ["NAT64", "64:ff9b::7f00:1", "loopback"],
    ["NAT64 and public", "64:ff9b::8.8.8.8", "global"],
    ["6to4", "2002:7f00:1::", "reserved"],
    ["Teredo", "2001:0:4136:e378:8000:63bf:3fff:fdd2", "reserved"],
    ["translated", "::ffff:0:127.0.0.1", "reserved"],
  ])("reads an embedded IPv4 address: %s", (_name, address, kind) => {
    expect(addressKind(address)).toBe(kind);
  });

  it.each([
    "",
    "localhost",
    "1.2.3",
    "1.2.3.4.5",
    "256.1.1.1",
    "1.2.3.-4",
    "::1::",
    ":::",
    "1:2:3:4:5:6:7",
    "1:2:3:4:5:6:7:8:9",
    "g::",
    "12345::",
    "1.2.3.4::",
    ":1::",
    "1:",
    "01.2.3.4",
    "::1]/[",
    "[::1]",
  ])("%j is not an address", (text) => {
    expect(addressKind(text)).toBeUndefined();
  });

  /** Returns whether anyone may call the address, according to `node:net` with the IANA special-purpose registries. */
  function isPublic(address: string): boolean {
    if (isIPv4(address)) return !special.check(address, "ipv4");
    const embedded = embedding.check(address, "ipv6");
    if (embedded) return isPublic(lastBytes(address));
    return allocated.check(address, "ipv6") && !special.check(address, "ipv6");
  }

  it("classifies IPv4 addresses as global exactly like an independent list", () => {
    const byte = fc.integer({ min: 0, max: 255 });
    const passed = fc.sample(fc.tuple(byte, byte, byte, byte), 5000).map((bytes) => bytes.join("."));
    expect(passed.filter((text) => (addressKind(text) === "global") !== isPublic(text))).toEqual([]);
  });

  it("classifies IPv6 addresses as global exactly like an independent list, in any spelling", () => {
    const heads = [0x2000, 0x2001, 0x2002, 0x3fff, 0x64, 0x100, 0xfc00, 0xfe80, 0xff02, 0];
    const group = fc.oneof(fc.constantFrom(0, 0xffff, 0xff9b, 0xdb8, 1, 0x7f00), fc.integer({ min: 0, max: 0xffff }));
    const first = fc.oneof(fc.constantFrom(...heads), fc.integer({ min: 0, max: 0xffff }));
    fc.assert(
      fc.property(first, fc.array(group, { minLength: 7, maxLength: 7 }), (head, tail) => {
        const long = [head, ...tail].map((part) => part.toString(16)).join(":");
        const kind = addressKind(long);
        expect(addressKind(new URL(`http://[${long}]/`).hostname.slice(1, -1))).toBe(kind);
        expect(kind === "global").toBe(isPublic(long));
      }),
      { numRuns: 5000 },
    );
  });
});

function list(ranges: readonly string[]): BlockList {
  const found = new BlockList();
  for (const range of ranges) {
    const [address = "", bits] = range.split("/");
    found.addSubnet(address, Number(bits), isIPv4(address) ? "ipv4" : "ipv6");
  }
  return found;
}

/** Ranges that IANA lists as not globally reachable, deprecated ranges, and one range of a cloud provider. */
const special = list([
  "0.0.0.0/8",
  "10.0.0.0/8",
  "100.64.0.0/10",
  "127.0.0.0/8",
  "168.63.129.16/32",
  "169.254.0.0/16",
  "172.16.0.0/12",
  "192.0.0.0/24",
  "192.0.2.0/24",
  "192.88.99.0/24",
  "192.168.0.0/16",
  "198.18.0.0/15",
  "198.51.100.0/24",
  "203.0.113.0/24",
  "224.0.0.0/4",
  "240.0.0.0/4",
  "2001::/23",
  "2001:db8::/32",
  "2002::/16",
  "3fff::/20",
]);
const allocated = list(["2000::/3"]);
const embedding = list(["::ffff:0:0/96", "64:ff9b::/96"]);

/** Returns the IPv4 address in the last four bytes of an IPv6 address of eight groups. */
function lastBytes(address: string): string {
  const groups = address.split(":").slice(-2);
  return groups
    .map((group) => Number.parseInt(group, 16))
    .flatMap((group) => [group >> 8, group & 0xff])
    .join(".");
}
