import type { Part } from "../model/index.ts";

/**
 * Writes the files of an answer into its text, for bindings that write it piece by piece. The text of such an answer has references in
 * the place of files, which mean nothing to a client.
 */
export interface InlineFiles {
  /** The text with its files in it, in pieces. `undefined`: it has none. */
  pieces(text: string): AsyncIterable<string> | undefined;
}

/** For a turn: files that are outside of its task. */
export interface TurnFiles {
  /** Files up to this many bytes stay in the task. */
  readonly inlineBytes: number;
  /**
   * Stores a file. Resolves to the URL for its part when it is durable.
   *
   * @throws A2AError `InvalidAgentResponse` where it is larger than a file may be, `Unavailable`, and what `bytes` throws.
   */
  store(
    bytes: AsyncIterable<Uint8Array>,
    about: { readonly filename?: string; readonly mediaType?: string },
  ): Promise<{ readonly url: string; readonly size: number }>;
  /** The file that the URL of a part names. `undefined`: the URL names none. */
  open(url: string): { readonly size: number; bytes(): AsyncIterable<Uint8Array> } | undefined;
  /** Parts for another agent: with the bytes of files, and with links to those that are too large for a message. */
  sendable(parts: readonly Part[]): Promise<readonly Part[]>;
  /** Whether some of them are links then, which are different ones each time. */
  hasLinks(parts: readonly Part[]): boolean;
}
