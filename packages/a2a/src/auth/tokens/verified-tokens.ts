import { BoundedMap, memoryOf } from "../../base/bounded-map.ts";
import type { Clock } from "../../base/index.ts";
import { secretDigest } from "../../base/sha256.ts";
import { checkSpelling, type CheckedToken, type CheckToken } from "./token.ts";

/** Memory of all tokens that are remembered, in bytes. */
const bytes = 16 << 20;

/** What is known of a token. */
interface Remembered<T> {
  readonly value: T;
  /** In milliseconds since the Unix epoch. */
  readonly expires: number;
  /** When it is forgotten, as `Clock.elapsed`. */
  readonly until: number;
  readonly bytes: number;
}

/**
 * Tokens that were verified, by their digests, so that the next message with the same token costs little. Requests that come with the
 * same token at the same time wait for one verification. What is wrong is not remembered.
 */
export class VerifiedTokens<T> {
  readonly #check: CheckToken;
  readonly #read: (token: CheckedToken) => Promise<T>;
  readonly #clock: Clock;
  readonly #remember: number;
  readonly #digest = secretDigest();
  readonly #known = new BoundedMap<Remembered<T>>({ bytes, bytesOf: (_, known) => known.bytes });
  readonly #checking = new Map<string, Promise<Remembered<T>>>();

  /**
   * @param read - Makes what is needed of a token. Called once for each verification.
   * @param remember - In milliseconds.
   */
  constructor(check: CheckToken, read: (token: CheckedToken) => Promise<T>, clock: Clock, remember: number) {
    this.#check = check;
    this.#read = read;
    this.#clock = clock;
    this.#remember = remember;
  }

  /**
   * What is known of a token, verified now or before.
   *
   * @returns Also when it expires, in milliseconds since the Unix epoch. The time is for the caller to check.
   */
  get(token: string): Remembered<T> | Promise<Remembered<T>> {
    const key = this.#digest(token);
    const known = this.#known.get(key);
    if (known !== undefined && this.#clock.elapsed() < known.until) return known;
    const checking = this.#checking.get(key);
    if (checking !== undefined) return checking;
    const begun = this.#verify(token, key).finally(() => this.#checking.delete(key));
    this.#checking.set(key, begun);
    return begun;
  }

  async #verify(token: string, key: string): Promise<Remembered<T>> {
    checkSpelling(token);
    const checked = await this.#check(token);
    const known = {
      value: await this.#read(checked),
      expires: checked.expires,
      until: this.#clock.elapsed() + this.#remember,
      // Objects take a few times their JSON.
      bytes: memoryOf(key, token) + 1_000 + 8 * JSON.stringify(checked.claims).length,
    };
    this.#known.set(key, known);
    return known;
  }
}
