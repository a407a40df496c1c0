import type { Principal } from "@parley/a2a/protocol";

/** A caller without credentials. This object differs from any principal with the same subject. */
export const anonymous: Principal = { subject: "anonymous" };

/** Identifies a caller. */
export function callerKey(caller: Principal): string {
  return caller === anonymous ? "anonymous" : JSON.stringify([caller.organization ?? null, caller.subject]);
}

/* Handles of tasks and conversations. With a key, a handle is bound to one caller: `<id>~<mac>`. */

export type HandleKind = "task" | "context";

/** Makes and reads handles. */
export interface Handles {
  /** The caller's handle for an id. */
  seal(kind: HandleKind, id: string): Promise<string>;
  /** The id of a handle. `undefined` if the handle does not belong to this caller. */
  open(kind: HandleKind, handle: string): Promise<string | undefined>;
}

const plainHandles: Handles = { seal: async (_, id) => id, open: async (_, handle) => handle };

/** Makes a caller's handles. Without a key, handles are the ids. */
export function handlesFor(key: CryptoKey | undefined, caller: Principal): Handles {
  if (key === undefined) return plainHandles;
  const mac = async (kind: HandleKind, id: string): Promise<string> => {
    const text = JSON.stringify([kind, callerKey(caller), id]);
    const bytes = new Uint8Array(await crypto.subtle.sign("HMAC", key, new TextEncoder().encode(text)));
    return Array.from(bytes.subarray(0, 16), (byte) => byte.toString(16).padStart(2, "0")).join("");
  };
  return {
    seal: async (kind, id) => `${id}~${await mac(kind, id)}`,
    async open(kind, handle) {
      const at = handle.lastIndexOf("~");
      const id = handle.slice(0, at);
      return at > 0 && isEqual(handle.slice(at + 1), await mac(kind, id)) ? id : undefined;
    },
  };
}

type CryptoKey = Awaited<ReturnType<typeof crypto.subtle.importKey>>;
export type HandleKey = CryptoKey;

/** Throws TypeError for a short key. */
export async function handleKey(secret: string | undefined): Promise<HandleKey | undefined> {
  if (secret === undefined) return undefined;
  if (secret.length < 32) throw new TypeError(`key must have at least 32 characters; got ${secret.length}`);
  const bytes = new TextEncoder().encode(secret);
  return crypto.subtle.importKey("raw", bytes, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
}

/** Compares in constant time. */
function isEqual(one: string, other: string): boolean {
  let difference = one.length ^ other.length;
  for (let at = 0; at < other.length; at += 1) difference |= one.charCodeAt(at) ^ other.charCodeAt(at);
  return difference === 0;
}
