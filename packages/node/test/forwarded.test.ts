import { describe, expect, it } from "vitest";
import fc from "fast-check";
import {
  AddressSet,
  plainAddress,
  hopsOf,
  lastElement,
  type ForwardedHeaders,
  type Hop,
  Proxies,
} from "../src/http/proxies.ts";

/** Tests proxies' forwarding headers, which the server reads from the end. */

function hops(headers: ForwardedHeaders, values: Readonly<Record<string, string>>): readonly Hop[] {
  return [...hopsOf(headers, (name) => values[name])];
}

const from = (address: string | undefined, secure?: boolean): Hop => ({ address, secure });

describe("X-Forwarded-For", () => {
  it.each([
    ["192.0.2.1", ["192.0.2.1"]],
    ["192.0.2.1, 10.0.0.1", ["10.0.0.1", "192.0.2.1"]],
    ["192.0.2.1,10.0.0.1 ", ["10.0.0.1", "192.0.2.1"]],
    ["192.0.2.1:4711", ["192.0.2.1"]],
    ["[2001:DB8::1]:4711", ["2001:db8::1"]],
    ["2001:0db8:0:0::1", ["2001:db8::1"]],
    ["::ffff:192.0.2.1", ["192.0.2.1"]],
    ["fe80::1%eth0", ["fe80::1"]],
    ["unknown", [undefined]],
    ["_hidden, 192.0.2.1", ["192.0.2.1", undefined]],
    ["", [undefined]],
    ["192.0.2.1,", [undefined, "192.0.2.1"]],
    ["192.0.2.256", [undefined]],
    ["0300.0.2.1", [undefined]],
    ["3221225985", [undefined]],
    ["localhost", [undefined]],
    ["192.0.2.1; DROP", [undefined]],
    ["1.2.3.4\t, \t5.6.7.8", ["5.6.7.8", "1.2.3.4"]],
  ])("%j: %j", (value, addresses) => {
    expect(hops("x-forwarded", { "x-forwarded-for": value }).map(({ address }) => address)).toEqual(addresses);
  });

  it("is combined with the last value of X-Forwarded-Proto", () => {
    const read = (proto: string): Hop | undefined =>
      hops("x-forwarded", { "x-forwarded-for": "192.0.2.1", "x-forwarded-proto": proto })[0];
    expect(["https", "HTTPS", "http", "https, http", "http,https", ""].map((proto) => read(proto)?.secure)).toEqual([
      true,
      true,
      false,
      false,
      true,
      undefined,
    ]);
  });
});

describe("Forwarded (RFC 7239 §4)", () => {
  it.each<[string, readonly Hop[]]>([
    ["for=192.0.2.43", [from("192.0.2.43")]],
    ["for=192.0.2.60;proto=http;by=203.0.113.43", [from("192.0.2.60", false)]],
    ["For=192.0.2.43, FOR=198.51.100.17;PROTO=HTTPS", [from("198.51.100.17", true), from("192.0.2.43")]],
    ['for="[2001:db8:cafe::17]:4711"', [from("2001:db8:cafe::17")]],
    ['for="192.0.2.1:80" ; proto="https"', [from("192.0.2.1", true)]],
    ['for="_gazonk"', [from(undefined)]],
    ["for=unknown;proto=https", [from(undefined, true)]],
    ["proto=https", [from(undefined, true)]],
    ['for=192.0.2.1;host="a, for=198.51.100.1"', [from("192.0.2.1")]],
    ['for="192.0.2.\\1"', [from("192.0.2.1")]],
    ["", []],
    ["nonsense", []],
    ["for", []],
    ["for = 192.0.2.1", []],
  ])("%s", (value, expected) => {
    expect(hops("forwarded", { forwarded: value })).toEqual(expected);
  });

  it.each([
    'for="',
    'for="1.2.3.4',
    'x="\\',
    "for=1.2.3.4;",
    ";;;",
    'for="unclosed, for=5.6.7.8',
    '"',
    "\\",
    'for=1.2.3.4;host="',
  ])("reads the proxy's element after a client's: %s", (written) => {
    for (const added of ["for=192.0.2.1;proto=https", 'for="[2001:db8::1]";host="a b"', 'by="x";for=192.0.2.1']) {
      const [nearest] = hops("forwarded", { forwarded: `${written}, ${added}` });
      expect(nearest?.address).toBe(added.includes("2001") ? "2001:db8::1" : "192.0.2.1");
    }
  });

  it("reads the element that a proxy adds, whatever precedes it", () => {
    const hostile = fc.string({ unit: fc.constantFrom(...'for=;,"\\ \t[]:.1a_%'.split("")), maxLength: 60 });
    fc.assert(
      fc.property(hostile, (written) => {
        const [nearest] = hops("forwarded", { forwarded: `${written},for=192.0.2.7;proto=https` });
        expect(nearest).toEqual(from("192.0.2.7", true));
      }),
      { numRuns: 2_000 },
    );
  });

  it("takes linear time", () => {
    // A pattern that backtracks would take minutes for one of these headers.
    const size = 60_000;
    for (const value of [
      `a=b${" ".repeat(size)}x`,
      `${",".repeat(size)}x`,
      `${'a="'.repeat(size / 3)}x`,
      `${"a=b;".repeat(size / 4)}x`,
      `a="${"\\".repeat(size)}`,
      `${",a=b ".repeat(size / 5)};`,
      `${" ,".repeat(size / 2)}"`,
    ]) {
      expect(lastElement(value)).toBeUndefined();
    }
  });
});

describe("trusted proxies", () => {
  const clientOf = (trust: ConstructorParameters<typeof Proxies>[0], peer: string, headers: Record<string, string>) => {
    const client = new Proxies(trust).clientOf(peer, (name) => headers[name]);
    return client && { address: client.address, secure: client.secure };
  };

  it("are the only senders whose headers are trusted", () => {
    const headers = { "x-forwarded-for": "192.0.2.1", "x-forwarded-proto": "https", forwarded: "for=198.51.100.1" };
    expect(clientOf(["10.0.0.0/8"], "10.1.2.3", headers)).toEqual(from("192.0.2.1", true));
    expect(clientOf(["10.0.0.0/8"], "::ffff:10.1.2.3", headers)).toEqual(from("192.0.2.1", true));
    expect(clientOf(["10.0.0.0/8"], "11.1.2.3", headers)).toBeUndefined();
    expect(clientOf({ addresses: ["fd00::/8"], headers: "forwarded" }, "fd12::1", headers)).toEqual(
      from("198.51.100.1"),
    );
  });

  it("are followed to the first sender that is not trusted, whose own header is ignored", () => {
    const headers = { "x-forwarded-for": "203.0.113.9, 192.0.2.1, 10.0.0.2" };
    expect(clientOf(["10.0.0.0/8"], "10.0.0.1", headers)?.address).toBe("192.0.2.1");
    expect(clientOf(["10.0.0.1"], "10.0.0.1", headers)?.address).toBe("10.0.0.2");
  });

  it("count as the client if their header names none", () => {
    expect(clientOf(["loopback"], "127.0.0.1", {})).toEqual(from("127.0.0.1"));
    expect(clientOf(["loopback"], "::1", { "x-forwarded-for": "unknown" })?.address).toBe("::1");
    expect(clientOf(["10.0.0.0/8"], "10.0.0.1", { "x-forwarded-for": "1.1.1.1, nonsense, 10.0.0.2" })?.address).toBe(
      "10.0.0.2",
    );
  });

  it("are followed through 32 of them at most", () => {
    const list = Array.from({ length: 1_000 }, (_, at) => `10.0.0.${1000 - at > 255 ? 1 : 1000 - at}`).join(",");
    expect(clientOf(["10.0.0.0/8"], "10.0.0.99", { "x-forwarded-for": list })?.address).toBe("10.0.0.32");
  });

  it.each([
    ["10.0.0.1" as never, "must be a list of addresses"],
    [{ addresses: "10.0.0.1" as never }, "must be a list of addresses"],
    [["10.0.0.0/33"], "10.0.0.0/33"],
    [["10.0.0/8"], "10.0.0/8"],
    [["proxy.example.com"], "proxy.example.com"],
    [["::/129"], "::/129"],
    [["fe80::1%eth0"], "fe80::1%eth0"],
    [["0.0.0.0/0"], "all addresses"],
    [["::/0"], "all addresses"],
    [["constructor"], "constructor"],
    [[""], '""'],
    [{ addresses: ["10.0.0.1"], headers: "both" as "forwarded" }, "both"],
  ])("must be named: %j is rejected", (trust, problem) => {
    expect(() => new Proxies(trust)).toThrow(problem);
  });

  it("have names for the private networks", () => {
    const set = new AddressSet(["loopback", "linklocal", "uniquelocal"], "trustProxy");
    const inside = [
      "127.8.9.1",
      "::1",
      "169.254.1.1",
      "fe80::1%eth0",
      "10.9.9.9",
      "172.31.0.1",
      "192.168.1.1",
      "fdff::1",
    ];
    const outside = [
      "128.0.0.1",
      "::2",
      "172.32.0.1",
      "fec0::1",
      "192.169.0.1",
      "2001:db8::1",
      "",
      "10.0.0",
      undefined,
    ];
    expect([inside.filter((each) => !set.has(each)), outside.filter((each) => set.has(each))]).toEqual([[], []]);
  });
});

it("an address is normalized, or invalid", () => {
  const texts = [
    "1.2.3.4",
    "::FFFF:1.2.3.4",
    "::ffff:102:304",
    "2001:DB8::0:1",
    "::",
    "::1.2.3.4",
    "01.2.3.4",
    "a",
    "",
  ];
  expect(texts.map(plainAddress)).toEqual([
    "1.2.3.4",
    "1.2.3.4",
    "1.2.3.4",
    "2001:db8::1",
    "::",
    "::102:304",
    undefined,
    undefined,
    undefined,
  ]);
});
