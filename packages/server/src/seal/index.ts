import type { Bytes, WebKey } from "@parley/a2a/internal/base/index";
import { fromCanonicalBase64 } from "@parley/a2a/internal/base/base64";
import { toBase64 } from "@parley/a2a/internal/model/index";

/*
 * What a server keeps secret is stored sealed with AES-256-GCM, so that a copy of the database does not have it. Its keys are derived
 * from those of the server.
 */

/** A key that seals. */
export interface SealKey {
  /** The name of the key. It may be stored beside what the key sealed. */
  readonly id: string;
  /** AES-256-GCM. */
  readonly seal: WebKey;
}

/** Keys, derived when this is called first. The first one seals; the others open what they sealed. */
export type SealKeyring = () => Promise<readonly [SealKey, ...SealKey[]]>;

/** Seals values, and opens them. */
export interface Seal {
  /**
   * Seals a value with the first key. `bound`: names what it belongs to. The text is the id of the key, the initialization vector and
   * the sealed bytes, with a dot between them.
   */
  seal(value: unknown, bound: readonly string[]): Promise<string>;
  /** Opens with the key that sealed. Rejects if the text was changed, was sealed for something else, or with an unknown key. */
  open(text: string, bound: readonly string[]): Promise<unknown>;
}

const ivBytes = 12;

/** A sealed value is bound to what it belongs to: one that is copied to another place does not open. */
export function createSeal(keyring: SealKeyring): Seal {
  return {
    async seal(value, bound) {
      const [{ id, seal }] = await keyring();
      const iv = crypto.getRandomValues(new Uint8Array(ivBytes));
      const plain = new TextEncoder().encode(JSON.stringify(value));
      const sealed = await crypto.subtle.encrypt(algorithm(iv, bound), seal, plain);
      return [id, toBase64(iv), toBase64(sealed)].join(".");
    },
    async open(text, bound) {
      const [id, ...rest] = text.split(".");
      const key = (await keyring()).find((each) => each.id === id);
      if (key === undefined) throw new Error("It was sealed with a key that this server does not have");
      const [iv, sealed, ...more] = rest.map(fromCanonicalBase64);
      if (iv === undefined || sealed === undefined || more.length > 0)
        throw new Error("It is not spelled as it was sealed");
      try {
        const plain = await crypto.subtle.decrypt(algorithm(iv, bound), key.seal, sealed);
        return JSON.parse(new TextDecoder().decode(plain)) as unknown;
      } catch (cause) {
        throw new Error("It does not open: it was changed, or belongs to something else", { cause });
      }
    },
  };
}

/**
 * Derives keys for one purpose from those of the server, 32 bytes each, with HKDF (RFC 5869): no derived key tells anything about
 * another.
 */
export function sealKeyring([first, ...others]: readonly [Bytes, ...Bytes[]], purpose: string): SealKeyring {
  let derived: ReturnType<SealKeyring> | undefined;
  const derive = async (bytes: Bytes): Promise<SealKey> => {
    const root = await hkdfRoot(bytes);
    const aes = { name: "AES-GCM", length: 256 };
    const seal = await crypto.subtle.deriveKey(hkdf(purpose), root, aes, false, ["encrypt", "decrypt"]);
    const id = toBase64(await crypto.subtle.deriveBits(hkdf(`${purpose} id`), root, 48));
    return { id, seal };
  };
  return () => (derived ??= Promise.all([derive(first), ...others.map(derive)]));
}

/** What keys are derived from. */
export function hkdfRoot(bytes: Bytes): Promise<WebKey> {
  return crypto.subtle.importKey("raw", bytes, "HKDF", false, ["deriveBits", "deriveKey"]);
}

interface HkdfParameters {
  readonly name: "HKDF";
  readonly hash: "SHA-256";
  readonly salt: Bytes;
  readonly info: Bytes;
}

/** Derives for one purpose. */
export function hkdf(purpose: string): HkdfParameters {
  return { name: "HKDF", hash: "SHA-256", salt: new Uint8Array(), info: new TextEncoder().encode(purpose) };
}

interface Algorithm {
  readonly name: "AES-GCM";
  readonly iv: Bytes;
  readonly additionalData: Bytes;
}

function algorithm(iv: Bytes, bound: readonly string[]): Algorithm {
  return { name: "AES-GCM", iv, additionalData: new TextEncoder().encode(JSON.stringify(bound)) };
}

/**
 * Makes a function that tells whether two texts are the same, without telling the text: HMAC-SHA256 under a key that is derived for
 * this purpose. Who has no key cannot find out a short text by trying all.
 */
export function receiptOf(bytes: Bytes, purpose: string): (text: string) => Promise<string> {
  let key: Promise<WebKey> | undefined;
  const derive = async (): Promise<WebKey> => {
    const hmac = { name: "HMAC", hash: "SHA-256", length: 256 };
    return crypto.subtle.deriveKey(hkdf(purpose), await hkdfRoot(bytes), hmac, false, ["sign"]);
  };
  return async (text) => {
    key ??= derive();
    return toBase64(await crypto.subtle.sign("HMAC", await key, new TextEncoder().encode(text)));
  };
}
