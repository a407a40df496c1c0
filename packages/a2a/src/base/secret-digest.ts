/**
 * Makes a function that digests secrets, so that they can be looked up. It is HMAC under a random key: the time of the look-up does
 * not tell how much of a guessed secret is right.
 */
export function secretDigest(): (secret: string) => Promise<string> {
  const encoder = new TextEncoder();
  let key: Promise<CryptoKey> | undefined;
  return async (secret) => {
    key ??= crypto.subtle.generateKey({ name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
    return String.fromCharCode(...new Uint8Array(await crypto.subtle.sign("HMAC", await key, encoder.encode(secret))));
  };
}
