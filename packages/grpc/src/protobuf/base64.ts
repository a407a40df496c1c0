interface NodeBuffer {
  from(text: string, encoding: "base64"): Uint8Array;
  from(buffer: ArrayBufferLike, at: number, length: number): { toString(encoding: "base64"): string };
}

/** Node's is ten times as fast, which counts for files of megabytes; browsers have what comes after it. */
const { Buffer: node } = globalThis as { Buffer?: NodeBuffer };

/** Standard alphabet, with padding. */
export function toBase64(bytes: Uint8Array): string {
  if (node !== undefined) return node.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("base64");
  let text = "";
  // A call takes only so many arguments.
  for (let at = 0; at < bytes.length; at += 4096) text += String.fromCharCode(...bytes.subarray(at, at + 4096));
  return btoa(text);
}

/** Either alphabet, with padding or without. */
export function fromBase64(text: string): Uint8Array {
  if (node !== undefined) return node.from(text, "base64");
  const binary = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
  const bytes = new Uint8Array(binary.length);
  for (let at = 0; at < bytes.length; at++) bytes[at] = binary.charCodeAt(at);
  return bytes;
}
