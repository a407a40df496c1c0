import type { Bytes } from "../base/index.ts";
import type { SendMessageRequest } from "../model/index.ts";
import type { AgentService, Principal } from "./service.ts";

/* Large files of messages, which are stored while the body of their request is read (`blobs`). */

/** A large file of a message that is being received. */
export interface IncomingFile {
  /** A hash of its bytes, as that of the blobs. */
  readonly hash: string;
  /** Size in bytes. */
  readonly size: number;
  /** Its key in the store of files. */
  key: string;
  /** The task that the message makes where it names none: the key is of that task. */
  readonly taskId: string;
  /** Whether the message keeps it. One that is not taken is deleted at the end of its request. */
  taken: boolean;
}

/** The large files of one request, by the URLs that stand for them. No client knows such a URL before its request is over. */
export type IncomingFilesByUrl = ReadonlyMap<string, IncomingFile>;

/** Who sends a message with large files, and what is known of it before it is read. */
export interface FileSender {
  /** Who owns the files. */
  readonly principal: Principal;
  /** The IP address of the client: what tells callers without a name apart. */
  readonly address: string | undefined;
  /** The agents that the message can be for. */
  readonly services: ReadonlyMap<string | undefined, AgentService>;
  /** The announced size of the body in bytes. `undefined`: the client does not say. */
  readonly bytes: number | undefined;
  /** Aborted when the client is gone. */
  readonly signal: () => AbortSignal;
}

/** Takes large files out of messages while these are read. */
export interface FileReceiver {
  /** Files of more than so many bytes are taken out. */
  readonly inlineBytes: number;
  /** Largest body with files in bytes. */
  readonly messageBytes: number;
  /** Most memory that one file takes while it is stored, in bytes. */
  readonly bufferBytes: number;
  /**
   * Begins to receive a message.
   *
   * @throws A2AError `Unavailable` where other messages take all the room.
   */
  open(sender: FileSender): Promise<IncomingFiles>;
}

/** The sender of a body. */
export interface WatchedSender {
  /** Whether the server waits for it now. */
  readonly isAwaited: boolean;
  /** Reads nothing more. */
  refuse(error: Error): void;
}

/** The large files of one request, while it is read and answered. */
export interface IncomingFiles {
  /** From now on a sender that is slow for the room it has is refused where other messages wait for room. */
  watch(sender: WatchedSender): void;
  /**
   * Is told how many bytes of the body have come. Rejects where there is no room for more.
   *
   * @throws A2AError `RequestTooLarge`, `Unavailable`.
   */
  came(bytes: number): Promise<void> | void;
  /**
   * Stores a file. Resolves, once it is durable, to 24 random bytes that stand for it in the message. What `bytes` throws is thrown on, and
   * nothing is left.
   *
   * @throws A2AError `RequestTooLarge` where the file is too large, `Unavailable` where the store of files does not work.
   */
  store(bytes: AsyncIterable<Bytes>): Promise<Bytes>;
  /** Whether nothing was taken out of the body: it is as its client wrote it. */
  readonly isEmpty: boolean;
  /** The request with the URLs of its files in the place of those bytes. */
  resolve(request: SendMessageRequest): SendMessageRequest;
  /** The files, for the context of the call. */
  readonly files: IncomingFilesByUrl;
  /** Called when the body is complete: gives its room to other messages. The answer may take hours. */
  received(): void;
  /** Ends the request. Files that the message does not keep are deleted. Never rejects. */
  close(): Promise<void>;
}
