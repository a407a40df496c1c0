/**
 * Makes a function that digests secrets under a random key, so that the time of a lookup does not reveal how much of a guess is right.
 */
export function secretDigest(): (secret: string) => string {
  let bytes: Sha256 | undefined;
  let others: Sha256 | undefined;
  // The keys are created on first use, because some runtimes have no random numbers before the first request.
  return (secret) => {
    try {
      return (bytes ??= keyed()).digest(secret);
    } catch {
      // The text has characters beyond U+00FF. Uses another key, so that its digest differs from the digests of byte texts.
      return (others ??= keyed()).digest(binary(new TextEncoder().encode(secret)));
    }
  };
}

function keyed(): Sha256 {
  return new Sha256(crypto.getRandomValues(new Uint8Array(64)));
}

/** Bytes as a text with one character per byte. */
function binary(bytes: Uint8Array): string {
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return text;
}

/**
 * Synchronous SHA-256 (FIPS 180-4): 5 µs for a token of 700 characters. WebCrypto needs a thread and 20 µs, half of the cost of a
 * message.
 */
export class Sha256 {
  readonly #state: Int32Array;
  readonly #words: Int32Array = new Int32Array(64);
  readonly #scratch: Int32Array = new Int32Array(8);

  /** `prefix`: 64 bytes that go before each text, such as a key. They are hashed once. */
  constructor(prefix: Uint8Array) {
    this.#state = Int32Array.from(initial);
    const { buffer, byteOffset, byteLength } = prefix;
    if (byteLength !== 64) throw new RangeError("The prefix must be one block of 64 bytes");
    const view = new DataView(buffer, byteOffset, byteLength);
    for (let at = 0; at < 16; at += 1) this.#words[at] = view.getInt32(4 * at);
    compress(this.#state, this.#words);
  }

  /** The digest of the prefix and a text, as 16 characters of 16 bits. Throws if the text has characters beyond U+00FF. */
  digest(text: string): string {
    const state = this.#scratch;
    state.set(this.#state);
    const words = this.#words;
    const { length } = text;
    let at = 0;
    for (; at + 64 <= length; at += 64) {
      for (let word = 0; word < 16; word += 1) words[word] = wordAt(text, at + 4 * word);
      compress(state, words);
    }
    // The padding: the rest of the text, a one bit, zeros, and the total length in bits.
    const rest = length - at;
    for (let word = 0; word < 16; word += 1) words[word] = paddedWord(text, at + 4 * word);
    if (rest >= 56) {
      compress(state, words);
      words.fill(0, 0, 16);
    }
    const bits = 8 * (length + 64);
    words[14] = Math.floor(bits / 0x1_0000_0000);
    words[15] = bits | 0;
    compress(state, words);
    let digest = "";
    for (const word of state) digest += String.fromCharCode(word >>> 16, word & 0xffff);
    return digest;
  }
}

function byteAt(text: string, at: number): number {
  const code = text.charCodeAt(at);
  if (code > 0xff) throw new RangeError("text must have only characters up to U+00FF");
  return code;
}

function wordAt(text: string, at: number): number {
  return (byteAt(text, at) << 24) | (byteAt(text, at + 1) << 16) | (byteAt(text, at + 2) << 8) | byteAt(text, at + 3);
}

/** A word that may extend beyond the end of the text, after which the padding begins. */
function paddedWord(text: string, at: number): number {
  let word = 0;
  for (let byte = 0; byte < 4; byte += 1) {
    const next = at + byte;
    word = (word << 8) | (next < text.length ? byteAt(text, next) : next === text.length ? 0x80 : 0);
  }
  return word;
}

/** The first 32 bits of the fractional parts of roots of the first primes. */
function fractions(count: number, root: (prime: number) => number): Int32Array {
  const found: number[] = [];
  for (let candidate = 2; found.length < count; candidate += 1) {
    if (isPrime(candidate)) found.push((root(candidate) % 1) * 0x1_0000_0000);
  }
  return Int32Array.from(found, (value) => value | 0);
}

function isPrime(candidate: number): boolean {
  for (let divisor = 2; divisor * divisor <= candidate; divisor += 1) if (candidate % divisor === 0) return false;
  return true;
}

const initial = fractions(8, Math.sqrt);
const constants = fractions(64, Math.cbrt);

/** One block: 16 words, extended to 64 (FIPS 180-4 §6.2.2). `?? 0` satisfies the compiler and costs nothing for a typed array. */
function compress(state: Int32Array, words: Int32Array): void {
  for (let at = 16; at < 64; at += 1) {
    const x = words[at - 15] ?? 0;
    const y = words[at - 2] ?? 0;
    const s0 = ((x >>> 7) | (x << 25)) ^ ((x >>> 18) | (x << 14)) ^ (x >>> 3);
    const s1 = ((y >>> 17) | (y << 15)) ^ ((y >>> 19) | (y << 13)) ^ (y >>> 10);
    words[at] = ((words[at - 16] ?? 0) + s0 + (words[at - 7] ?? 0) + s1) | 0;
  }
  let a = state[0] ?? 0;
  let b = state[1] ?? 0;
  let c = state[2] ?? 0;
  let d = state[3] ?? 0;
  let e = state[4] ?? 0;
  let f = state[5] ?? 0;
  let g = state[6] ?? 0;
  let h = state[7] ?? 0;
  for (let at = 0; at < 64; at += 1) {
    const sum1 = ((e >>> 6) | (e << 26)) ^ ((e >>> 11) | (e << 21)) ^ ((e >>> 25) | (e << 7));
    const first = (h + sum1 + ((e & f) ^ (~e & g)) + (constants[at] ?? 0) + (words[at] ?? 0)) | 0;
    const sum0 = ((a >>> 2) | (a << 30)) ^ ((a >>> 13) | (a << 19)) ^ ((a >>> 22) | (a << 10));
    const second = (sum0 + ((a & b) ^ (a & c) ^ (b & c))) | 0;
    h = g;
    g = f;
    f = e;
    e = (d + first) | 0;
    d = c;
    c = b;
    b = a;
    a = (first + second) | 0;
  }
  // The array wraps to 32 bits.
  state[0] = (state[0] ?? 0) + a;
  state[1] = (state[1] ?? 0) + b;
  state[2] = (state[2] ?? 0) + c;
  state[3] = (state[3] ?? 0) + d;
  state[4] = (state[4] ?? 0) + e;
  state[5] = (state[5] ?? 0) + f;
  state[6] = (state[6] ?? 0) + g;
  state[7] = (state[7] ?? 0) + h;
}
