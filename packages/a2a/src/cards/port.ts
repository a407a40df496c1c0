import type { Logger } from "../base/index.ts";
import type { PrivateJwk, PublicJwk, SigningAlgorithm } from "../jws/keys.ts";
import type { Dialer, NetPolicy } from "../net/port.ts";

/**
 * Cards that can be trusted: how they are signed, and what a reader of a signed card trusts (A2A 1.0 §8.4).
 */

/** A public key as a JWK (RFC 7517). Members that are not named here may be there too. */
export interface PublicCardKey extends PublicJwk {}

/** A private key as a JWK, which `makeCardKey()` makes. Keep it secret. */
export interface PrivateCardKey extends PrivateJwk {}

/** A set of public keys (RFC 7517 §5). */
export interface CardKeySet {
  /** The keys. */
  readonly keys: readonly PublicCardKey[];
}

/** Algorithms of signatures: ECDSA with P-256, Ed25519, RSA with PKCS #1 v1.5 (RFC 7518, RFC 8037). */
export type CardAlgorithm = SigningAlgorithm;

/** How a card is signed. */
export interface SignCardOptions {
  /**
   * URL of the key set with the public keys: the header `jku`. A reader takes it for a hint. Default: the header is left out.
   */
  readonly jku?: string;
  /**
   * Whether the form that the SDKs of JavaScript and Python read is signed too, if it lacks something of the card: they drop
   * each empty value, and so a security requirement without scopes, such as that of an API key. Without this signature they
   * refuse such a card. With it an attacker can remove these requirements from the card without invalidating the signature: those
   * clients then send no credentials, and the server rejects them. Clients of this package ignore it. Default true.
   */
  readonly reduced?: boolean;
}

/** Keys whose signatures count. */
export interface TrustedKeys {
  /** The keys themselves, or the URL of a key set that its owner may change. It is read again every ten minutes. */
  readonly keySet: CardKeySet | string;
  /**
   * The origins of the agents whose cards the keys may sign, such as `https://agents.example.com`: that of the address that the card was
   * asked for at, or, if the card itself was given, those of all its interfaces. Default: any.
   */
  readonly origins?: readonly string[];
}

/** Decides whether a client uses a card. `trustCards()` makes one. */
export interface CardCheck {
  /**
   * Returns the card to use: what the trusted signatures cover, or the first document where the policy accepts it without them.
   *
   * @param documents - The same card in each form in which it may have been signed.
   * @param address - Where it was asked for. `undefined`: the card itself was given.
   * @param logger - Logs a card that is used without a valid signature.
   * @throws A2AError `InvalidResponse` if the card is not trusted, `Unavailable` if the keys for it cannot be read now.
   */
  check(
    documents: readonly [object, ...(readonly object[])],
    address: string | undefined,
    logger: Logger,
  ): Promise<object>;
}

/** What a client trusts. */
export interface CardTrust {
  /**
   * - `require`: rejects a card without a valid signature of a trusted key.
   * - `prefer`: uses such a card and logs a warning, unless it names a trusted key and the signature is wrong.
   * - `ignore`: signatures are not looked at.
   *
   * Default `require`.
   */
  readonly policy?: "require" | "prefer" | "ignore";
  /** The keys. A card cannot add to them. */
  readonly keys?: readonly (TrustedKeys | PublicCardKey)[];
  /**
   * Origins whose key sets count where the header `jku` of a signature names one of them: `https://keys.example.com`. A `jku` anywhere else
   * is not called.
   */
  readonly jku?: readonly string[];
  /** Which addresses of key sets may be called. Default: public ones over HTTPS, and those that `keys` names. */
  readonly net?: NetPolicy;
  /** Pins the addresses of key sets: `nodeDialer()` of `@parley/node`. Absent: the runtime resolves their names again. */
  readonly dialer?: Dialer;
}

/**
 * Which bytes a signature is over.
 * - `exact`: the card as it came, without its signatures.
 * - `specification`: the form of A2A 1.0 §8.4.1; for a card of 0.3 its known members.
 * - `reduced`: the same without empty values, as the SDKs of JavaScript and Python write it. It counts only if nothing that
 *   means something is left out.
 */
export type CardReading = "exact" | "specification" | "reduced";

/** What is known about one signature of a card. */
export interface SignatureVerdict {
  /**
   * - `valid`: it is by a trusted key.
   * - `invalid`: it names a trusted key, but is not valid.
   * - `unknown-key`: its key is not trusted.
   * - `outdated-key`: its key is expired, revoked or not valid yet.
   * - `unreadable-keys`: the key set that it needs cannot be read now.
   * - `unsupported`: it cannot be read, or its algorithm is not accepted.
   */
  readonly outcome: "valid" | "invalid" | "unknown-key" | "outdated-key" | "unreadable-keys" | "unsupported";
  /** `kid` of its header. */
  readonly kid?: string;
  /** `alg` of its header. */
  readonly alg?: string;
  /** `jku` of its header. */
  readonly jku?: string;
  /** What it is over. Only if it is `valid`. */
  readonly reading?: CardReading;
  /** What is wrong, for people. */
  readonly reason?: string;
}

/** What is known about the signatures of a card. */
export interface CardVerdict {
  /** Whether signatures of trusted keys cover the card. */
  readonly trusted: boolean;
  /** What these signatures cover. Use it in place of the document. Only if the card is trusted. */
  readonly card?: object;
  /** One for each signature of the card, in its order. Only the first 16 are looked at. */
  readonly signatures: readonly SignatureVerdict[];
}

/** Something in a card that a reader could stumble over. */
export interface CardFinding {
  /** `error`: it breaks the specification. `warning`: it works, but not for all, or not as it seems. */
  readonly level: "error" | "warning";
  /** Path of the member: `skills[0].id`. Empty: the whole card. */
  readonly field: string;
  /** What is wrong, and what to do. */
  readonly message: string;
}
