import type { JsonValue } from "@parley/a2a/internal/model/index";

/** A digest of JSON, in hexadecimal digits (SHA-256). The order of members counts. */
export async function fingerprint(value: JsonValue): Promise<string> {
  const bytes = new TextEncoder().encode(JSON.stringify(value));
  const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  return Array.from(hash, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
