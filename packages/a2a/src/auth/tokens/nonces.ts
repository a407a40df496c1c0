import { toBase64Url } from "../../base/bytes.ts";
import type { Clock, WebKey } from "../../base/index.ts";

/** How long a nonce is the current one, in milliseconds. It is taken as long again. */
const period = 5 * 60_000;

/**
 * Nonces for proofs (RFC 9449 §8, §9). They are made from the time and a secret, so that none has to be kept, and processes with the
 * same secret take those of each other.
 */
export class Nonces {
  readonly #secret: Uint8Array<ArrayBuffer>;
  readonly #clock: Clock;
  #key: Promise<WebKey> | undefined;

  /** `secret`: `true` is a random one. */
  constructor(secret: true | string, clock: Clock) {
    this.#secret =
      secret === true ? crypto.getRandomValues(new Uint8Array(32)) : new TextEncoder().encode(`dpop nonce ${secret}`);
    this.#clock = clock;
  }

  /** The nonce now. */
  current(): Promise<string> {
    return this.#nonce(this.#period);
  }

  /** Whether a proof may have this nonce: the current one, or the one before. */
  async accepts(nonce: unknown): Promise<boolean> {
    return nonce === (await this.#nonce(this.#period)) || nonce === (await this.#nonce(this.#period - 1));
  }

  get #period(): number {
    return Math.floor(this.#clock.now() / period);
  }

  async #nonce(at: number): Promise<string> {
    this.#key ??= crypto.subtle.importKey("raw", this.#secret, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
    const signature = await crypto.subtle.sign("HMAC", await this.#key, new TextEncoder().encode(String(at)));
    return toBase64Url(signature);
  }
}
