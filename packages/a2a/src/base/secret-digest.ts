import { Sha256 } from "./sha256.ts";

/**
 * Makes a function that digests secrets, so that they can be looked up. The digests are under a random key: the time of the look-up does
 * not tell how much of a guessed secret is right. They are worth nothing outside of this process.
 */
export function secretDigest(): (secret: string) => string {
  const encoder = new TextEncoder();
  let hash: Sha256 | undefined;
  return (secret) => {
    // When it is first needed: some runtimes have no random numbers before the first request.
    hash ??= new Sha256(crypto.getRandomValues(new Uint8Array(64)));
    return hash.digest(ascii.test(secret) ? secret : binary(encoder.encode(secret)));
  };
}

const ascii = /^[ -~]*$/;

/** Bytes as a text of as many characters. */
function binary(bytes: Uint8Array): string {
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return text;
}
