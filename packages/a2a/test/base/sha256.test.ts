import { createHash, randomBytes } from "node:crypto";
import { describe, expect, it } from "vitest";
import { secretDigest, Sha256 } from "../../src/base/sha256.ts";

/** Returns Node's hash of the same bytes, as 16 characters of 16 bits. */
function expected(prefix: Uint8Array, text: string): string {
  const bytes = createHash("sha256").update(prefix).update(Buffer.from(text, "latin1")).digest();
  return String.fromCharCode(...Array.from({ length: 16 }, (_, at) => bytes.readUInt16BE(2 * at)));
}

describe("synchronous SHA-256", () => {
  it("equals Node's hash for each length around block boundaries (FIPS 180-4)", () => {
    const prefix = randomBytes(64);
    const hash = new Sha256(prefix);
    for (let length = 0; length < 200; length += 1) {
      const text = randomBytes(length).toString("latin1");
      expect(hash.digest(text)).toBe(expected(prefix, text));
    }
    const long = randomBytes(20_000).toString("latin1");
    expect(hash.digest(long)).toBe(expected(prefix, long));
  });

  it("takes a key of one block, and bytes only", () => {
    expect(() => new Sha256(new Uint8Array(32))).toThrow(RangeError);
    expect(() => new Sha256(new Uint8Array(64)).digest("\u0100")).toThrow(RangeError);
  });
});

describe("the digest of a secret", () => {
  it("is equal for equal secrets only, in any letters", () => {
    const digest = secretDigest();
    const secrets = ["", "a", "ä", "\u00e4", "a\u0308", "\u{1F511}", "\u{1F512}", "\n", "\u0000", "x".repeat(5000)];
    const digests = new Map(secrets.map((secret) => [digest(secret), secret]));
    expect(digests.size).toBe(new Set(secrets).size);
    for (const secret of secrets) expect(digests.get(digest(secret))).toBe(secret);
  });

  it("uses its own key: another digester or process gets another digest", () => {
    expect(secretDigest()("a")).not.toBe(secretDigest()("a"));
    expect(secretDigest()("a")).not.toBe(expected(new Uint8Array(64), "a"));
  });
});
