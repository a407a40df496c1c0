import { createHash, randomBytes } from "node:crypto";
import { describe, expect, it } from "vitest";
import { secretDigest, Sha256 } from "../../src/base/sha256.ts";

/** What Node says about the same bytes, as 16 characters of 16 bits. */
function expected(prefix: Uint8Array, text: string): string {
  const bytes = createHash("sha256").update(prefix).update(Buffer.from(text, "latin1")).digest();
  return String.fromCharCode(...Array.from({ length: 16 }, (_, at) => bytes.readUInt16BE(2 * at)));
}

describe("SHA-256 without waiting", () => {
  it("gives what Node gives, for each length around the ends of blocks (FIPS 180-4)", () => {
    const prefix = randomBytes(64);
    const hash = new Sha256(prefix);
    for (let length = 0; length < 200; length += 1) {
      const text = randomBytes(length).toString("latin1");
      expect(hash.digest(text)).toBe(expected(prefix, text));
    }
    const long = randomBytes(20_000).toString("latin1");
    expect(hash.digest(long)).toBe(expected(prefix, long));
  });

  it("takes a key of one block, and bytes alone", () => {
    expect(() => new Sha256(new Uint8Array(32))).toThrow(RangeError);
    expect(() => new Sha256(new Uint8Array(64)).digest("\u0100")).toThrow(RangeError);
  });
});

describe("the digest of a secret", () => {
  it("is the same for the same secret, and another one for any other, also in other letters", () => {
    const digest = secretDigest();
    const secrets = ["", "a", "ä", "\u00e4", "a\u0308", "\u{1F511}", "\u{1F512}", "\n", "\u0000", "x".repeat(5000)];
    const digests = new Map(secrets.map((secret) => [digest(secret), secret]));
    expect(digests.size).toBe(new Set(secrets).size);
    for (const secret of secrets) expect(digests.get(digest(secret))).toBe(secret);
  });

  it("is under a key of its own: no other digester, and nobody outside of the process, gets the same", () => {
    expect(secretDigest()("a")).not.toBe(secretDigest()("a"));
    expect(secretDigest()("a")).not.toBe(expected(new Uint8Array(64), "a"));
  });
});
