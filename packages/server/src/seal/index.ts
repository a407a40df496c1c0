import type { Bytes, WebKey } from "@parley/a2a/internal/base/index";
import { fromCanonicalBase64 } from "@parley/a2a/internal/base/bytes";
import { toBase64 } from "@parley/a2a/internal/model/index";
import type { StoredJson } from "@parley/a2a/internal/base/json";

/* Secrets are stored sealed with AES-256-GCM, so that a copy of the database does not reveal them. Its keys are derived from the server's keys. */

export interface SealKey {
  /** May be stored with the sealed value. */
  readonly id: string;
  /** AES-256-GCM. */
  readonly seal: WebKey;
}

/** Derives the keys once. The first key seals. The others only open values that they sealed earlier. */
export type SealKeyring = () => Promise<readonly [SealKey, ...SealKey[]]>;

/** Seals values, and opens them. */
export interface Seal {
  /** Seals a value with the first key, bound to the given names. The text is key id, initialization vector and sealed bytes, separated by dots. */
  seal(value: unknown, bound: readonly string[]): Promise<string>;
  /** Opens with the key that sealed; `json` reads the value. Rejects if the text was changed, was bound to something else, or its key is unknown. */
  open<Value>(text: string, bound: readonly string[], json: StoredJson<Value>): Promise<Value>;
}

const ivBytes = 12;

/** A sealed value can only be opened with the names that it is bound to. */
export function createSeal(keyring: SealKeyring): Seal {
  return {
    async seal(value, bound) {
      const [{ id, seal }] = await keyring();
      const iv = crypto.getRandomValues(new Uint8Array(ivBytes));
      const plain = new TextEncoder().encode(JSON.stringify(value));
      const sealed = await crypto.subtle.encrypt(algorithm(iv, bound), seal, plain);
      return [id, toBase64(iv), toBase64(sealed)].join(".");
    },
    async open(text, bound, json) {
      const [id, ...rest] = text.split(".");
      const key = (await keyring()).find((each) => each.id === id);
      if (key === undefined) throw new Error("sealed with a key that this server does not have");
      const [iv, sealed, ...more] = rest.map(fromCanonicalBase64);
      if (iv === undefined || sealed === undefined || more.length > 0) throw new Error("the sealed text is malformed");
      try {
        const plain = await crypto.subtle.decrypt(algorithm(iv, bound), key.seal, sealed);
        return json.read(new TextDecoder().decode(plain));
      } catch (cause) {
        throw new Error("it was changed, or sealed for something else", { cause });
      }
    },
  };
}

/** Derives keys for one purpose from the server's keys, 32 bytes each, with HKDF (RFC 5869): no derived key reveals another. */
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

export function hkdfRoot(bytes: Bytes): Promise<WebKey> {
  return crypto.subtle.importKey("raw", bytes, "HKDF", false, ["deriveBits", "deriveKey"]);
}

interface HkdfParameters {
  readonly name: "HKDF";
  readonly hash: "SHA-256";
  readonly salt: Bytes;
  readonly info: Bytes;
}

/** The HKDF parameters for one purpose. */
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
 * Makes a function to compare texts without storing them: HMAC-SHA256 under a key that is derived for this purpose. Without the key, short
 * texts cannot be guessed by trial.
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
