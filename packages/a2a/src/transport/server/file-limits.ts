import type { FileReceiver } from "../../protocol/index.ts";
import type { RequestLimits } from "./binding.ts";

/** Base64 of fewer characters stays in the text: shorter files are known by their text when a message is repeated. */
const minLength = 128 << 10;
/** Memory of what is on its way into the store of files, in bytes. */
const windowBytes = 512 << 10;

/** How large files are read, whatever the binding is. */
export function fileLimits(
  receiver: FileReceiver,
  limits: RequestLimits,
): { readonly inlineBytes: number; readonly textBytes: number; readonly windowBytes: number } {
  const textBytes = limits.bodyBytes;
  const inlineBytes = Math.min(Math.max(receiver.inlineBytes, (minLength * 3) / 4), (textBytes * 3) / 4);
  return { inlineBytes, textBytes, windowBytes: windowBytes + receiver.bufferBytes };
}
