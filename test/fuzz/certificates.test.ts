import { X509Certificate } from "node:crypto";
import { connect, createServer, type TLSSocket } from "node:tls";
import type { AddressInfo } from "node:net";
import { generate } from "selfsigned";
import { describe, expect, onTestFinished, test } from "vitest";
import { certificateIn, certificateOf } from "../../packages/node/src/http/certificates.ts";
import { times } from "../counts.ts";
import { seed } from "./fuzzed.ts";
import { randomFrom, type Random } from "./random.ts";

/** Hostile certificates: one name never becomes two, and bytes that are not a certificate are rejected. */

/** Pieces of names that imitate Node's list of names, or its quoting. */
const pieces = [
  "a",
  ".",
  ", ",
  ",",
  ":",
  '"',
  "\\",
  "URI:",
  "DNS:",
  "email:",
  "spiffe://example.com/admin",
  "%00",
  "\\u0041",
  "\n",
  "'",
  "=",
];

function hostileName(random: Random): string {
  const count = 1 + Math.floor(random() * 6);
  return Array.from({ length: count }, () => pieces[Math.floor(random() * pieces.length)]).join("");
}

const types = { email: 1, DNS: 2, URI: 6 } as const;

/** A certificate with arbitrary names, in PEM, with its key. */
async function certificate(names: readonly (readonly [keyof typeof types, string])[]) {
  const altNames = names.map(([kind, value]) => ({ type: types[kind], value }));
  const made = await generate([{ name: "commonName", value: "hostile" }], {
    keyType: "ec",
    algorithm: "sha256",
    extensions: [{ name: "subjectAltName", altNames }],
  });
  return { cert: made.cert, key: made.private };
}

function named(random: Random): readonly (readonly [keyof typeof types, string])[] {
  const kinds = ["email", "DNS", "URI"] as const;
  const count = 1 + Math.floor(random() * 3);
  return Array.from({ length: count }, () => [kinds[Math.floor(random() * 3)] ?? "URI", hostileName(random)] as const);
}

describe(`hostile certificates (FUZZ_SEED=${seed})`, () => {
  test("keep their names: what looks like a list stays one name (CVE-2021-44532)", async () => {
    const random = randomFrom(seed);
    for (let at = 0; at < times(60, 400); at += 1) {
      const names = named(random);
      const { cert } = await certificate(names);
      const read = certificateIn(new Uint8Array(new X509Certificate(cert).raw));
      expect(read?.names, JSON.stringify(names)).toEqual(names.map(([kind, name]) => `${kind}:${name}`));
    }
  });

  test("show the same names in a handshake", async () => {
    const random = randomFrom(seed + 1);
    const own = await certificate([["DNS", "localhost"]]);
    const shown: (readonly string[] | undefined)[] = [];
    const server = createServer({ ...own, requestCert: true, rejectUnauthorized: false }, (socket: TLSSocket) => {
      shown.push(certificateOf(socket)?.names);
      socket.end();
    });
    onTestFinished(() => void server.close());
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as AddressInfo;
    for (let at = 0; at < times(10, 100); at += 1) {
      const names = named(random);
      const client = connect({ port, host: "127.0.0.1", rejectUnauthorized: false, ...(await certificate(names)) });
      await new Promise((resolve, reject) => client.on("close", resolve).on("error", reject).resume());
      expect(shown[at], JSON.stringify(names)).toEqual(names.map(([kind, name]) => `${kind}:${name}`));
    }
  });

  test("that were changed anywhere are invalid, or have another fingerprint", async () => {
    const random = randomFrom(seed + 2);
    const { cert } = await certificate([["URI", "spiffe://example.com/planner"]]);
    const der = new Uint8Array(new X509Certificate(cert).raw);
    const fingerprint = certificateIn(der)?.fingerprint;
    expect(fingerprint).toMatch(/^[\da-f]{64}$/);
    for (let at = 0; at < times(2_000, 20_000); at += 1) {
      const changed = der.slice(0, random() < 0.1 ? Math.floor(random() * der.length) : der.length);
      const where = Math.floor(random() * changed.length);
      changed[where] = (changed[where] ?? 0) ^ (1 + Math.floor(random() * 255));
      expect(certificateIn(changed)?.fingerprint).not.toBe(fingerprint);
    }
    for (const bytes of [new Uint8Array(0), new Uint8Array(1 << 20), der.slice(1)]) {
      expect(certificateIn(bytes)).toBeUndefined();
    }
  });
});
