import type { Logger } from "../base/index.ts";
import type { PrivateJwk, PublicJwk, SigningAlgorithm } from "../jws/keys.ts";
import type { Dialer, NetPolicy } from "../net/port.ts";

/**
 * Interfaces for signing cards, and for trusting signed cards (A2A 1.0 §8.4).
 */

/** A public key as a JWK (RFC 7517), which may have further members. */
export interface PublicCardKey extends PublicJwk {}

/** A private key as a JWK, created by `makeCardKey()`. Keep it secret. */
export interface PrivateCardKey extends PrivateJwk {}

/** A set of public keys (RFC 7517 §5). */
export interface CardKeySet {
  /** The keys. */
  readonly keys: readonly PublicCardKey[];
}

/** Algorithms of signatures: ECDSA with P-256, Ed25519, RSA with PKCS #1 v1.5 (RFC 7518, RFC 8037). */
export type CardAlgorithm = SigningAlgorithm;

/** Options of `signCard()`. */
export interface SignCardOptions {
  /**
   * URL of the key set with the public keys, for the header `jku`. Readers treat the header only as a hint. Default: no `jku`.
   */
  readonly jku?: string;
  /**
   * Whether to also sign the form that the SDKs of JavaScript and Python read, if that form lacks content of the card. These SDKs drop every
   * empty value, including a security requirement without scopes, such as for an API key. Without this signature, the SDKs reject such a card.
   * With this signature, an attacker can remove these requirements without invalidating the signature; SDK clients then send no credentials,
   * and the server rejects their calls. Clients of this package ignore this signature. Default true.
   */
  readonly reduced?: boolean;
}

/** Keys whose signatures are trusted. */
export interface TrustedKeys {
  /** The keys themselves, or the URL of a key set. The key set is read again every ten minutes. */
  readonly keySet: CardKeySet | string;
  /**
   * The origins of the agents whose cards the keys may sign, such as `https://agents.example.com`. The list must
   * include the origin of the card's URL or, if you passed the card itself, the origins of all its interfaces. Default: any.
   */
  readonly origins?: readonly string[];
}

/** Decides whether a client uses a card. Created by `trustCards()`. */
export interface CardCheck {
  /**
   * Returns the card to use: the content that trusted signatures cover, or the first document if the policy accepts unsigned cards.
   *
   * @param documents - The card in each form that the signer may have signed.
   * @param address - The URL of the card. `undefined` if the card itself was passed.
   * @param logger - Logs a warning if a card is used without a valid signature.
   * @throws A2AError `InvalidResponse` if the card is not trusted, `Unavailable` if its keys cannot be read now.
   */
  check(
    documents: readonly [object, ...(readonly object[])],
    address: string | undefined,
    logger: Logger,
  ): Promise<object>;
}

/** Which cards a client trusts. */
export interface CardTrust {
  /**
   * - `require`: rejects a card without a valid signature of a trusted key.
   * - `prefer`: uses such a card and logs a warning, unless it has an invalid signature that names a trusted key.
   * - `ignore`: does not check signatures.
   *
   * Default `require`.
   */
  readonly policy?: "require" | "prefer" | "ignore";
  /** The trusted keys. A card cannot add keys. */
  readonly keys?: readonly (TrustedKeys | PublicCardKey)[];
  /**
   * Origins whose key sets are trusted if the header `jku` of a signature names them, such as `https://keys.example.com`. The client does
   * not call other URLs in `jku`.
   */
  readonly jku?: readonly string[];
  /** Which addresses of key sets may be called. Default: public addresses over HTTPS, and the URLs in `keys`. */
  readonly net?: NetPolicy;
  /** Pins the addresses of key sets, such as `nodeDialer()` of `@parley/node`. If absent, the runtime resolves their names again. */
  readonly dialer?: Dialer;
}

/**
 * Which bytes a signature covers.
 * - `exact`: the card as received, without its signatures.
 * - `specification`: the form of A2A 1.0 §8.4.1; for a card of 0.3, the known members of the card.
 * - `reduced`: the form without empty values, as the SDKs of JavaScript and Python write it. Accepted only if the omitted values have no meaning.
 */
export type CardReading = "exact" | "specification" | "reduced";

/** The verdict on one signature of a card. */
export interface SignatureVerdict {
  /**
   * - `valid`: a trusted key made the signature.
   * - `invalid`: the signature names a trusted key, but is not valid.
   * - `unknown-key`: the key is not trusted.
   * - `outdated-key`: the key is expired, revoked or not valid yet.
   * - `unreadable-keys`: the key set cannot be read now.
   * - `unsupported`: the signature is malformed, or its algorithm is not accepted.
   */
  readonly outcome: "valid" | "invalid" | "unknown-key" | "outdated-key" | "unreadable-keys" | "unsupported";
  /** `kid` of its header. */
  readonly kid?: string;
  /** `alg` of its header. */
  readonly alg?: string;
  /** `jku` of its header. */
  readonly jku?: string;
  /** The bytes that the signature covers. Present only if the signature is `valid`. */
  readonly reading?: CardReading;
  /** The problem, for humans. */
  readonly reason?: string;
}

/** The verdict on a card. */
export interface CardVerdict {
  /** Whether signatures of trusted keys cover the card. */
  readonly trusted: boolean;
  /** The content that these signatures cover. Use this card instead of the document. Present only if the card is trusted. */
  readonly card?: object;
  /** One verdict per signature, in the order of the card. Only the first 16 signatures are checked. */
  readonly signatures: readonly SignatureVerdict[];
}

/** A problem of a card. */
export interface CardFinding {
  /** `error` for a violation of the specification. `warning` if only some readers accept the value, or it has a surprising effect. */
  readonly level: "error" | "warning";
  /** Path of the member, such as `skills[0].id`. Empty for the whole card. */
  readonly field: string;
  /** The problem, and what to do. */
  readonly message: string;
}
