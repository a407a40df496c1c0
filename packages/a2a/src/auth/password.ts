import { fromBase64, toBase64, type A2AError } from "../model/index.ts";
import type { Bytes } from "../base/index.ts";
import { checkIsSet } from "./secrets.ts";

/* Hashes of passwords: PBKDF2 with HMAC-SHA-256 (RFC 8018 §5.2), the one of its kind that WebCrypto has. */

/** How a password is hashed. */
export interface PasswordHashOptions {
  /** How often the function is applied. More takes longer, for the server as for those who guess. Default 600,000. */
  readonly iterations?: number;
}

const usualIterations = 600_000;
const maxIterations = 10_000_000;
const kind = "pbkdf2-sha256";

/** A hash that is parsed. */
export interface PasswordHash {
  readonly iterations: number;
  readonly salt: Bytes;
  readonly hash: Bytes;
}

/**
 * The hash of a password, for `basic()`: `pbkdf2-sha256$`, the iterations, the salt and the hash. Takes part of a second.
 *
 * @throws A2AError `InvalidParams` where there is no password.
 *
 * @example
 * ```ts
 * const hash = await hashPassword("correct horse battery staple"); // for the configuration of the server
 * ```
 */
export async function hashPassword(
  password: string,
  { iterations = usualIterations }: PasswordHashOptions = {},
): Promise<string> {
  checkIsSet("password", password);
  const salt = crypto.getRandomValues(new Uint8Array(16));
  const hash = await derive(password, salt, iterations);
  return [kind, iterations, toBase64(salt), toBase64(hash)].join("$");
}

/** Reads a hash; `undefined` where the text is none. */
export function parsePasswordHash(text: unknown): PasswordHash | undefined {
  if (typeof text !== "string") return undefined;
  const [name, count = "", salt = "", hash = "", more] = text.split("$");
  if (name !== kind || more !== undefined || !/^[1-9]\d{0,7}$/.test(count) || Number(count) > maxIterations)
    return undefined;
  try {
    const parsed = { iterations: Number(count), salt: fromBase64(salt), hash: fromBase64(hash) };
    return parsed.salt.length >= 8 && parsed.hash.length === 32 ? parsed : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Makes a function that tells whether a password has a hash, and does the same work for every hash: as many derivations, with as many
 * iterations in all.
 *
 * @param all - The iterations of all hashes that are checked.
 */
export function passwordCheck(all: readonly number[]): (password: string, hash: PasswordHash) => Promise<boolean> {
  const most = Math.max(...all, 1);
  const areEqual = all.every((one) => one === most);
  return async (password, { iterations, salt, hash }) => {
    const derived = new Uint8Array(await derive(password, salt, iterations));
    // What this hash needs less than the slowest one. One iteration at least, so that there are always two derivations.
    if (!areEqual) await derive(password, salt, most - iterations + 1);
    // All bytes are compared, so that the time does not tell how many are right.
    return derived.reduce((difference, byte, at) => difference | (byte ^ (hash[at] as number)), 0) === 0;
  };
}

/** A hash that no password is known to have, for users who do not exist: finding that out must take as long. */
export function nobodysHash(iterations: number = usualIterations): PasswordHash {
  const random = (length: number): Bytes => crypto.getRandomValues(new Uint8Array(length));
  return { iterations, salt: random(16), hash: random(32) };
}

async function derive(password: string, salt: Bytes, iterations: number): Promise<ArrayBuffer> {
  // The same text may be written with different code points (RFC 8265 §4.2).
  const text = new TextEncoder().encode(password.normalize("NFC"));
  const key = await crypto.subtle.importKey("raw", text, "PBKDF2", false, ["deriveBits"]);
  return crypto.subtle.deriveBits({ name: "PBKDF2", hash: "SHA-256", salt, iterations }, key, 256);
}

/** Does work one after the other, a few at a time, and refuses what would wait too long. */
export class Turns {
  readonly #atOnce: number;
  readonly #waiting: (() => void)[] = [];
  readonly #most: number;
  readonly #refuse: () => A2AError;
  #running = 0;

  /** `most`: how many may wait. */
  constructor(atOnce: number, most: number, refuse: () => A2AError) {
    this.#atOnce = atOnce;
    this.#most = most;
    this.#refuse = refuse;
  }

  async take<T>(work: () => Promise<T>): Promise<T> {
    if (this.#running >= this.#atOnce) {
      if (this.#waiting.length >= this.#most) throw this.#refuse();
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    } else {
      this.#running += 1;
    }
    try {
      return await work();
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#running -= 1;
      else next();
    }
  }
}
