import type { Random } from "./random.ts";

/** A way to damage the bytes of a message. */
export type ByteDamage = (bytes: Uint8Array, random: Random) => Uint8Array;

function below(random: Random, limit: number): number {
  return Math.floor(random() * limit);
}

function join(...pieces: readonly (Uint8Array | readonly number[])[]): Uint8Array {
  return Buffer.concat(pieces.map((piece) => Uint8Array.from(piece)));
}

/** Two random positions in the bytes, in order. */
function range(bytes: Uint8Array, random: Random): readonly [number, number] {
  const start = below(random, bytes.length + 1);
  return [start, start + below(random, bytes.length + 1 - start)];
}

function replaced(byte: (old: number, random: Random) => number): ByteDamage {
  return (bytes, random) => {
    const at = below(random, bytes.length);
    const copy = Uint8Array.from(bytes);
    if (bytes.length > 0) copy[at] = byte(bytes[at] as number, random);
    return copy;
  };
}

function inserted(...pieces: readonly (readonly number[])[]): ByteDamage {
  return (bytes, random) => {
    const at = below(random, bytes.length + 1);
    return join(bytes.subarray(0, at), pieces[below(random, pieces.length)] ?? [], bytes.subarray(at));
  };
}

function appended(...pieces: readonly (readonly number[])[]): ByteDamage {
  return (bytes, random) => join(bytes, pieces[below(random, pieces.length)] ?? []);
}

/** An unknown field, and the message's fields with each wire type. */
const strangeFields: readonly (readonly number[])[] = [
  [0xf8, 0x07, 0x01],
  [0xfa, 0x07, 0x03, 1, 2, 3],
  [0x00, 0x00],
  [0x02, 0x00],
  ...[1, 2, 3, 4, 5, 6, 7].flatMap((field) => [
    [(field << 3) | 0, 0x05],
    [(field << 3) | 1, 0, 0, 0, 0, 0, 0, 0, 0],
    [(field << 3) | 2, 0x00],
    [(field << 3) | 2, 0x02, 0x08, 0x01],
    [(field << 3) | 2, 0x02, 0xff, 0xfe],
    [(field << 3) | 3, (field << 3) | 4],
    [(field << 3) | 3],
    [(field << 3) | 4],
    [(field << 3) | 5, 0, 0, 0, 0],
    [(field << 3) | 6],
    [(field << 3) | 7],
  ]),
];

const tooLong = [0xff, 0xff, 0xff, 0xff, 0x0f];
const endless = Array.from({ length: 12 }, () => 0xff);

/** A google.protobuf.Value with nested lists or nested objects. */
export function nestedValue(levels: number, isList: boolean): Uint8Array {
  let bytes: Uint8Array = Uint8Array.of(0x20, 0x01);
  const wrap = (tag: number, inner: Uint8Array): Uint8Array => join([tag], lengthOf(inner.length), inner);
  for (let level = 0; level < levels; level += 1) {
    bytes = isList
      ? wrap(0x32, wrap(0x0a, bytes))
      : wrap(0x2a, wrap(0x0a, join([0x0a, 0x01, 0x61], wrap(0x12, bytes))));
  }
  return bytes;
}

function lengthOf(size: number): number[] {
  return size < 0x80 ? [size] : [(size & 0x7f) | 0x80, ...lengthOf(size >>> 7)];
}

export const byteDamages: Readonly<Record<string, ByteDamage>> = {
  "a bit turned over": replaced((old, random) => old ^ (1 << below(random, 8))),
  "any byte": replaced((_, random) => below(random, 256)),
  "a zero": replaced(() => 0),
  "a length or number that continues": replaced((old) => old | 0x80),
  "one more": replaced((old) => (old + 1) & 0xff),
  "one less": replaced((old) => (old + 255) & 0xff),
  "cut off": (bytes, random) => bytes.subarray(0, below(random, bytes.length)),
  "the beginning lost": (bytes, random) => bytes.subarray(1 + below(random, bytes.length)),
  "a piece lost": (bytes, random) => {
    const [start, end] = range(bytes, random);
    return join(bytes.subarray(0, start), bytes.subarray(end));
  },
  "a piece twice": (bytes, random) => {
    const [start, end] = range(bytes, random);
    return join(bytes.subarray(0, end), bytes.subarray(start));
  },
  "any bytes between": (bytes, random) => inserted(Array.from({ length: 4 }, () => below(random, 256)))(bytes, random),
  "far too long": inserted(tooLong),
  "a number without an end": inserted(endless),
  "a strange field between": inserted(...strangeFields),
  "a strange field behind": appended(...strangeFields),
  "all of it twice": (bytes) => join(bytes, bytes),
  "any bytes": (_, random) => Uint8Array.from({ length: below(random, 64) }, () => below(random, 256)),
};
