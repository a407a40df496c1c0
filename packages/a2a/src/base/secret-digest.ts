/**
 * Makes a function that digests secrets, so that they can be looked up. It is HMAC under a random key: the time of the look-up does
 * not tell how much of a guessed secret is right.
 */
export function secretDigest(): (secret: string) => Promise<string> {
  const encoder = new TextEncoder();
  const newKey = () => crypto.subtle.generateKey({ name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  let key: ReturnType<typeof newKey> | undefined;
  return async (secret) => {
    key ??= newKey();
    return String.fromCharCode(...new Uint8Array(await crypto.subtle.sign("HMAC", await key, encoder.encode(secret))));
  };
}
