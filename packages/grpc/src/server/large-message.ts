import { A2AError } from "@parley/a2a/model";
import { GrowingBytes, type FileReceiver, type IncomingFiles } from "@parley/a2a/internal/protocol/index";
import { fileLimits, type BodyPieces } from "@parley/a2a/internal/transport/server/body-pieces";
import type { RequestLimits } from "@parley/a2a/internal/transport/server/binding";
import { byteAt, compressed } from "../frames.ts";
import { malformed } from "../protobuf/wire.ts";
import { fieldTypes, type Field, type MessageType } from "../protobuf/types.ts";
import type { LargeMessage } from "./call-reader.ts";

/* A message that is too large for memory: its large files are stored while it arrives. */

/** The fields that lead to the bytes of a file, in all versions. */
const onTheWay: ReadonlySet<string> = new Set(["message", "parts", "content", "file"]);
const ofFiles: ReadonlySet<string> = new Set(["raw", "fileWithBytes"]);

interface LargeMessageOptions {
  readonly files: IncomingFiles;
  readonly receiver: FileReceiver;
  readonly limits: RequestLimits;
}

/**
 * Reads a message with a placeholder for each large file.
 *
 * @throws A2AError `ParseError` for malformed bytes, `RequestTooLarge` if it is too large without its files.
 */
export async function readLargeMessage(
  type: MessageType,
  { flags, length, source }: LargeMessage,
  options: LargeMessageOptions,
): Promise<Uint8Array> {
  if (flags === compressed) {
    const limit = options.limits.bodyBytes;
    throw new A2AError(
      "RequestTooLarge",
      `Message larger than ${limit} bytes: one with large files must not be compressed`,
    );
  }
  if (flags !== 0) throw new A2AError("InvalidRequest", "A frame has unknown flags");
  source.onBytes = (bytes) => options.files.came(bytes);
  options.files.watch(source);
  const reader = new LargeReader(source, options);
  const out = new GrowingBytes(options.limits.bodyBytes);
  await reader.message(type, length, out);
  reader.end();
  return out.view();
}

const none = new Uint8Array(0);

class LargeReader {
  readonly #source: BodyPieces;
  readonly #files: IncomingFiles;
  readonly #limits: ReturnType<typeof fileLimits>;
  #piece: Uint8Array = none;
  #at = 0;
  /** Bytes of the message read so far. */
  #read = 0;
  /** Bytes kept in memory. */
  #kept = 0;

  constructor(source: BodyPieces, { files, receiver, limits }: LargeMessageOptions) {
    this.#source = source;
    this.#files = files;
    this.#limits = fileLimits(receiver, limits);
  }

  /** Returns the bytes after the message to the source. */
  end(): void {
    this.#source.unread(this.#piece.subarray(this.#at));
  }

  /** Reads the fields up to `end`, and writes them to `out`. */
  async message(type: MessageType, end: number, out: GrowingBytes): Promise<void> {
    while (this.#read < end) {
      const tag = await this.#varint(out);
      const field = type.byNumber[tag >>> 3];
      switch (tag & 7) {
        case 0:
          await this.#varint(out);
          break;
        case 1:
          await this.#copy(8, out);
          break;
        case 2:
          await this.#delimited(field, end, out);
          break;
        case 5:
          await this.#copy(4, out);
          break;
        case 3:
        case 4:
          // The fields of a group are between its tags.
          break;
        default:
          throw malformed("a field of an unknown wire type");
      }
    }
    if (this.#read !== end) throw malformed("a field reaches beyond its message");
  }

  async #delimited(field: Field | undefined, end: number, out: GrowingBytes): Promise<void> {
    const length = await this.#varint(undefined);
    if (length > end - this.#read) throw malformed("it is incomplete");
    if (field?.message !== undefined && onTheWay.has(field.name)) {
      const nested = new GrowingBytes(this.#limits.textBytes);
      await this.message(field.message, this.#read + length, nested);
      putLength(nested.length, out);
      out.append(nested.view());
    } else if (field?.type === fieldTypes.bytes && ofFiles.has(field.name) && length > this.#limits.inlineBytes) {
      const placeholder = await this.#files.store(this.#bytes(length));
      putLength(placeholder.length, out);
      this.#keep(placeholder, out);
    } else {
      putLength(length, out);
      await this.#copy(length, out);
    }
  }

  /** A varint as 32 bits. Higher bits are dropped, as in every implementation. Copied to `out`. */
  async #varint(out: GrowingBytes | undefined): Promise<number> {
    const bytes: number[] = [];
    for (let [value, shift] = [0, 0]; shift < 70; shift += 7) {
      if (this.#at === this.#piece.length) await this.#more();
      const byte = byteAt(this.#piece, this.#at++);
      this.#read += 1;
      bytes.push(byte);
      if (shift < 32) value |= (byte & 0x7f) << shift;
      if (byte >= 0x80) continue;
      if (out !== undefined) this.#keep(Uint8Array.from(bytes), out);
      return value >>> 0;
    }
    throw malformed("a number of more than ten bytes");
  }

  async #more(): Promise<void> {
    const piece = await this.#source.next();
    if (piece === undefined) throw new A2AError("ParseError", "The last message is incomplete");
    this.#piece = piece;
    this.#at = 0;
    // Nested fields are copied into the outer ones.
    const reserved = 4 * this.#kept;
    await this.#source.hold(reserved, reserved + this.#limits.windowBytes);
  }

  async *#bytes(length: number): AsyncGenerator<Uint8Array<ArrayBuffer>, void, void> {
    for (let left = length; left > 0;) {
      if (this.#at === this.#piece.length) await this.#more();
      const bytes = this.#piece.subarray(this.#at, this.#at + left);
      this.#at += bytes.length;
      this.#read += bytes.length;
      left -= bytes.length;
      yield bytes as Uint8Array<ArrayBuffer>;
    }
  }

  async #copy(length: number, out: GrowingBytes): Promise<void> {
    for await (const bytes of this.#bytes(length)) this.#keep(bytes, out);
  }

  #keep(bytes: Uint8Array, out: GrowingBytes): void {
    const { textBytes } = this.#limits;
    this.#kept += bytes.length;
    if (this.#kept > textBytes) {
      throw new A2AError(
        "RequestTooLarge",
        `Message larger than ${textBytes} bytes, also without its large files (limits.bodyBytes)`,
      );
    }
    out.append(bytes);
  }
}

function putLength(length: number, out: GrowingBytes): void {
  const bytes: number[] = [];
  let left = length;
  for (; left >= 0x80; left = Math.floor(left / 128)) bytes.push((left & 0x7f) | 0x80);
  bytes.push(left);
  out.append(Uint8Array.from(bytes));
}
