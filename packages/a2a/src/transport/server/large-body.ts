import { A2AError, invalidParams, toBase64 } from "../../model/index.ts";
import {
  GrowingBytes,
  smallBody,
  type FileReceiver,
  type FileSender,
  type IncomingFiles,
  type UniversalRequest,
} from "../../protocol/index.ts";
import type { RequestLimits } from "./binding.ts";
import { BodyPieces, fileLimits } from "./body-pieces.ts";
import type { Bytes } from "../../base/index.ts";
import { JsonBase64 } from "./json-base64.ts";

/* Reads bodies of messages that are too large for memory. */

/** The text of a body of more than `most` bytes, with placeholders for large files. The files are in `call.files`. */
export async function readLargeText(
  call: { readonly request: UniversalRequest; files?: IncomingFiles },
  receiver: FileReceiver,
  limits: RequestLimits,
  sender: FileSender,
  most: number,
): Promise<string> {
  const { request } = call;
  const source = new BodyPieces();
  try {
    const enter = (): void => void (source.place = limits.unfinished?.enter(source, request.connection));
    if (sender.bytes === undefined) {
      enter();
      const flow = request.read?.(source);
      if (flow !== undefined) source.from(flow);
      const whole = await beginning(source, most);
      if (whole !== undefined) return textOf(whole);
      // The received bytes count towards the budget, even while there is no room for the rest.
      const opening = receiver.open(sender);
      try {
        call.files = await source.unlessRefused(opening);
      } catch (error) {
        opening.then((files) => files.close()).catch(() => {});
        throw error;
      }
      await call.files.came(source.again);
    } else {
      // Nothing is read before there is room.
      call.files = await receiver.open(sender);
      enter();
      const flow = request.read?.(source);
      if (flow !== undefined) source.from(flow);
    }
    const { files } = call;
    source.onBytes = (bytes) => files.came(bytes);
    files.watch(source);
    const { inlineBytes, ...given } = fileLimits(receiver, limits);
    const json = new JsonFiles(source, { files, inlineLength: 4 * Math.ceil(inlineBytes / 3), ...given });
    return textOf(await json.read());
  } finally {
    source.close();
  }
}

/** The body. `undefined` if it has more than `most` bytes; the body must then be read again from the beginning. */
async function beginning(source: BodyPieces, most: number): Promise<Uint8Array | undefined> {
  const bytes = new GrowingBytes(most);
  for (;;) {
    const piece = await source.next();
    if (piece === undefined) return bytes.view();
    if (bytes.length + piece.length > most) {
      source.restart(bytes.view(), piece);
      return undefined;
    }
    bytes.append(piece);
    const { capacity } = bytes;
    await source.hold(capacity, bytes.length > smallBody ? Math.max(capacity, most) : capacity);
  }
}

function textOf(bytes: Uint8Array): string {
  // The decoder removes a byte order mark, which is not part of JSON text (RFC 8259 §8.1).
  const decoder = new TextDecoder("utf-8", { fatal: true });
  try {
    return decoder.decode(bytes);
  } catch {
    throw new A2AError("ParseError", "Request body is not UTF-8");
  }
}

/* Extracts large files from the JSON text of a message while it arrives. */

/** The paths of file bytes in the requests of all versions, over JSON-RPC and REST, without indexes. */
const places =
  /^(?:params\.)?(?:message|request)\.(?:parts|content)\.(?:raw|file\.(?:bytes|fileWithBytes|file_with_bytes))$/;
/** Maximum length of a name on such a path, and maximum levels of the path. */
const longestName = 16;
const maxLevels = 8;
const longestPath = 100;

/** An enclosing object or list. */
interface Level {
  readonly isObject: boolean;
  /** Name of the current member. `undefined` if the member is not on a path to a file. */
  name: string | undefined;
  /** Members or elements so far. */
  index: number;
}

export interface JsonFilesOptions {
  readonly files: IncomingFiles;
  /** Strings of at most this many characters stay in the text. */
  readonly inlineLength: number;
  /** Maximum bytes of the text without its files. */
  readonly textBytes: number;
  /** Memory that a file takes while it is stored, in bytes. */
  readonly windowBytes: number;
}

/** Reads JSON text. The parser reports malformed text later. */
export class JsonFiles {
  readonly #source: BodyPieces;
  readonly #options: JsonFilesOptions;
  readonly #text: GrowingBytes;
  readonly #levels: Level[] = [];
  /** Number of levels below the deepest possible file. */
  #deeper = 0;
  /** Whether the next string is the name of a member. */
  #nameNext = false;
  /** The current name, with its escapes. */
  #name: string | undefined;
  #inString = false;
  #afterBackslash = false;
  /** Whether a string that may be a file begins at the current position. */
  #atFile = false;

  constructor(source: BodyPieces, options: JsonFilesOptions) {
    this.#source = source;
    this.#options = options;
    this.#text = new GrowingBytes(options.textBytes);
  }

  /** The text, with a placeholder for the base64 of each file. */
  async read(): Promise<Uint8Array> {
    for (;;) {
      const piece = await this.#source.next();
      if (piece === undefined) return this.#text.view();
      const end = this.#scan(piece);
      this.#keep(piece.subarray(0, end));
      if (this.#atFile) {
        this.#source.unread(piece.subarray(end));
        this.#atFile = false;
        await this.#file();
      }
      await this.#source.hold(this.#text.capacity, this.#text.capacity + this.#options.windowBytes);
    }
  }

  #keep(bytes: Uint8Array): void {
    const { textBytes } = this.#options;
    if (this.#text.length + bytes.length > textBytes) {
      const what = `Request body larger than ${textBytes} bytes, also without its large files (limits.bodyBytes)`;
      throw new A2AError("RequestTooLarge", what);
    }
    this.#text.append(bytes);
  }

  /** Returns the end of the piece, or the start of the content of a string that may be a file. */
  #scan(piece: Uint8Array): number {
    for (let at = 0; at < piece.length; at += 1) {
      const byte = piece[at] ?? 0;
      if (this.#inString) this.#inText(byte);
      else if (byte === 0x22) {
        if (!this.#nameNext && !this.#isShort(piece, at + 1) && this.#isFile()) {
          this.#atFile = true;
          return at + 1;
        }
        this.#inString = true;
        this.#name = this.#nameNext ? "" : undefined;
      } else this.#structure(byte);
    }
    return piece.length;
  }

  /** Whether the string ends soon, so that it needs no decoder. A string with an escaped quote is not base64. */
  #isShort(piece: Uint8Array, from: number): boolean {
    const end = piece.indexOf(0x22, from);
    return end !== -1 && end - from <= this.#options.inlineLength;
  }

  #inText(byte: number): void {
    if (this.#afterBackslash) this.#afterBackslash = false;
    else if (byte === 0x5c) {
      this.#afterBackslash = true;
      // An escaped name is not on a path to a file, so its value is read as text.
      this.#name = undefined;
    } else if (byte === 0x22) {
      this.#inString = false;
      const level = this.#levels.at(-1);
      if (this.#nameNext && level !== undefined && this.#deeper === 0) level.name = this.#name;
      this.#nameNext = false;
    } else if (this.#name !== undefined) {
      this.#name = this.#name.length < longestName ? this.#name + String.fromCharCode(byte) : undefined;
    }
  }

  #structure(byte: number): void {
    // A bracket and a brace differ in one bit.
    if ((byte | 0x20) === 0x7b) {
      this.#nameNext = byte === 0x7b;
      if (this.#levels.length === maxLevels) this.#deeper += 1;
      else this.#levels.push({ isObject: byte === 0x7b, name: undefined, index: 0 });
    } else if ((byte | 0x20) === 0x7d) {
      this.#nameNext = false;
      if (this.#deeper > 0) this.#deeper -= 1;
      else this.#levels.pop();
    } else if (byte === 0x2c && this.#deeper === 0) {
      const level = this.#levels.at(-1);
      if (level === undefined) return;
      level.index += 1;
      level.name = undefined;
      this.#nameNext = level.isObject;
    }
  }

  #isFile(): boolean {
    if (this.#deeper > 0 || this.#levels.length < 4) return false;
    let path = "";
    for (const { isObject, name } of this.#levels) {
      if (isObject && name === undefined) return false;
      if (isObject) path += path === "" ? name : `.${name}`;
      if (path.length > longestPath) return false;
    }
    return places.test(path);
  }

  /** The field of the file, for errors. */
  get #field(): string {
    const names = this.#levels.map(({ isObject, name = "", index }) => (isObject ? `.${name}` : `[${index}]`));
    return names.join("").replace(/^\.(?:params\.)?/, "");
  }

  /** Reads the string of a file. A short file stays in the text. */
  async #file(): Promise<void> {
    const base64 = new JsonBase64();
    const head = new GrowingBytes(this.#options.inlineLength);
    const decoded: Bytes[] = [];
    while (!base64.ended && !base64.invalid && head.length <= this.#options.inlineLength) {
      const piece = await this.#piece();
      const { bytes, read } = base64.push(piece);
      decoded.push(bytes);
      head.append(piece.subarray(0, read));
      this.#source.unread(piece.subarray(read));
      const held = this.#text.capacity + 2 * head.capacity;
      await this.#source.hold(held, held + this.#options.windowBytes);
    }
    // The parser and the schemas check strings that are short or not base64.
    if (base64.invalid || (base64.ended && head.length - 1 <= this.#options.inlineLength)) {
      this.#keep(head.view());
      this.#inString = !base64.ended;
      // If the head ends in an escape, the next byte belongs to it.
      this.#afterBackslash = this.#inString && endsInBackslash(head.view());
      return;
    }
    const placeholder = await this.#options.files.store(this.#decoded(base64, decoded));
    this.#keep(new TextEncoder().encode(`${toBase64(placeholder)}"`));
  }

  async *#decoded(base64: JsonBase64, head: Bytes[]): AsyncGenerator<Bytes, void, void> {
    for (let piece = head.shift(); piece !== undefined; piece = head.shift()) yield piece;
    while (!base64.ended) {
      const piece = await this.#piece();
      const { bytes, read } = base64.push(piece);
      if (base64.invalid) throw this.#invalid();
      this.#source.unread(piece.subarray(read));
      if (bytes.length > 0) yield bytes;
    }
    const last = base64.last();
    if (base64.invalid) throw this.#invalid();
    if (last.length > 0) yield last;
  }

  #invalid(): A2AError {
    return invalidParams([{ field: this.#field, description: "must be base64" }]);
  }

  async #piece(): Promise<Uint8Array> {
    const piece = await this.#source.next();
    if (piece === undefined) throw new A2AError("ParseError");
    return piece;
  }
}

function endsInBackslash(bytes: Uint8Array): boolean {
  let count = 0;
  while (bytes[bytes.length - 1 - count] === 0x5c) count += 1;
  return count % 2 === 1;
}
