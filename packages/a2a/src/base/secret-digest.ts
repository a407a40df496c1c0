import { Sha256 } from "./sha256.ts";

/**
 * Makes a function that digests secrets, so that they can be looked up. The digests are under a random key: the time of the look-up does
 * not tell how much of a guessed secret is right. They are worth nothing outside of this process.
 */
export function secretDigest(): (secret: string) => string {
  let bytes: Sha256 | undefined;
  let others: Sha256 | undefined;
  // The keys are made when they are first needed: some runtimes have no random numbers before the first request.
  return (secret) => {
    try {
      return (bytes ??= keyed()).digest(secret);
    } catch {
      // Characters that are no bytes. Under a key of its own, so that no text of bytes has the same digest.
      return (others ??= keyed()).digest(binary(new TextEncoder().encode(secret)));
    }
  };
}

function keyed(): Sha256 {
  return new Sha256(crypto.getRandomValues(new Uint8Array(64)));
}

/** Bytes as a text of as many characters. */
function binary(bytes: Uint8Array): string {
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return text;
}
