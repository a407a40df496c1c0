import type { Bytes } from "./index.ts";

/** SHA-256 of a text in UTF-8, by WebCrypto. */
export async function sha256(text: string): Promise<Bytes> {
  return new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text)));
}

/** Bytes in hexadecimal. */
export function toHex(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
