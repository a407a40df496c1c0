/** Header or trailer lines, lower-case names. */
export type Metadata = Readonly<Record<string, string>>;

/** How the bytes of a call travel: over HTTP/2 as gRPC has it, or over any HTTP as gRPC-Web has it. */
export interface Wire {
  /** A header of the request; several of one name come joined by `, `. */
  header(name: string): string | undefined;
  readonly path: string;
  readonly remoteAddress: string;
  /** What the call shares with others, where one connection carries many. */
  readonly connection: object | undefined;
  /** Lets what comes wait with its sender, until `resume()`. */
  pause(): void;
  resume(): void;
  /** Has `receiver` told what comes. */
  listen(receiver: Receiver): void;
  /** Sends the head of an answer that goes well so far. */
  open(metadata?: Metadata): void;
  /** Takes frames; `false` means that the peer is behind: wait for `ready()` before the next ones. */
  write(frames: Uint8Array): boolean;
  /** Resolves when there is room again, or when the peer is gone. */
  ready(): Promise<void>;
  /** Resolves when everything that was written before its end has left, or the peer is gone. */
  sent(): Promise<void>;
  /** Ends the call: with trailers alone, or after frames, which a head with `metadata` goes before where none was sent. */
  close(trailers: Metadata, frames?: Uint8Array, metadata?: Metadata): void;
}

export interface Receiver {
  /** Bytes of frames. */
  chunk(bytes: Uint8Array): void;
  /** The peer has said everything. */
  end(): void;
  /** The peer is gone before it was told everything. */
  gone(): void;
}
