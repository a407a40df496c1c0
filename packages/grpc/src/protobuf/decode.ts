import { A2AError } from "@parley/a2a/model";
import { isObject } from "@parley/a2a/internal/model/schema";
import { malformed, Reader } from "./wire.ts";
import { durationText, timestampText, toBase64 } from "./text.ts";
import { fieldTypes, zeroOf, type Field, type JsonObject, type MessageType } from "./types.ts";

export interface DecodeOptions {
  /** Maximum nesting of objects and arrays, including the outermost. Default: 100, as in other libraries. */
  readonly depth?: number;
  /** Sets absent required lists, maps, strings and numbers to their empty value, which is the same in proto3. */
  readonly fill?: boolean;
  /** The name of the message in errors. Default: `message`. */
  readonly subject?: string;
}

const defaultDepth = 100;

/**
 * Decodes bytes into the ProtoJSON value, as `JSON.parse` would return it. Skips unknown fields.
 *
 * @throws A2AError `ParseError` for malformed bytes, `InvalidRequest` for too deep nesting.
 */
export function decode(type: MessageType, bytes: Uint8Array, options: DecodeOptions = {}): JsonObject {
  const decoder = new Decoder(new Reader(bytes), options);
  const depth = options.depth ?? defaultDepth;
  return type.wellKnown === "Struct"
    ? decoder.struct(bytes.length, depth, {})
    : decoder.message(type, bytes.length, depth, {});
}

class Decoder {
  readonly #reader: Reader;
  readonly #options: DecodeOptions;

  constructor(reader: Reader, options: DecodeOptions) {
    this.#reader = reader;
    this.#options = options;
  }

  /** Reads the fields up to `end`. `depth` is the number of levels left, including this one. */
  message(type: MessageType, end: number, depth: number, into: JsonObject): JsonObject {
    if (depth <= 0) throw this.#tooDeep();
    const reader = this.#reader;
    while (reader.at < end) {
      const tag = reader.uint32();
      const field = type.byNumber[tag >>> 3];
      if (field === undefined) this.#unknown(tag);
      else if (field.repeated) this.#repeated(field, tag, depth - 1, into);
      else if ((tag & 7) !== field.wire) this.#unknown(tag);
      else this.#single(field, depth - 1, into);
    }
    if (reader.at !== end) throw malformed("a field reaches beyond its message");
    if (this.#options.fill === true) fillIn(type, into);
    return into;
  }

  #single(field: Field, depth: number, into: JsonObject): void {
    const { name } = field;
    const value = this.#value(field, depth, into[name]);
    // Without presence a default value means absent, even after another value.
    if (!field.presence && (value === "" || value === 0 || value === false || isZero(field, value))) {
      if (name in into) delete into[name];
      return;
    }
    for (const rival of field.rivals) if (rival in into) delete into[rival];
    into[name] = value;
  }

  #repeated(field: Field, tag: number, depth: number, into: JsonObject): void {
    const reader = this.#reader;
    const wire = tag & 7;
    if (wire !== field.wire && !(wire === 2 && field.packed)) {
      this.#unknown(tag);
      return;
    }
    if (depth <= 0) throw this.#tooDeep();
    const earlier = into[field.name];
    const mapValue = field.message?.mapValue;
    if (mapValue !== undefined) {
      const map = objectOf(earlier);
      into[field.name] = map;
      this.#entry(mapValue, reader.end(), depth - 1, map);
      return;
    }
    const list: unknown[] = Array.isArray(earlier) ? earlier : [];
    into[field.name] = list;
    if (wire === field.wire) {
      list.push(this.#value(field, depth - 1, undefined));
      return;
    }
    const end = reader.end();
    while (reader.at < end) list.push(this.#value(field, depth - 1, undefined));
    if (reader.at !== end) throw malformed("a list reaches beyond its end");
  }

  /** An entry of a map whose values are of type `field`. */
  #entry(field: Field, end: number, depth: number, into: JsonObject): void {
    const reader = this.#reader;
    let key = "";
    let value: unknown;
    while (reader.at < end) {
      const tag = reader.uint32();
      if (tag === 10) key = reader.string();
      else if (tag === ((2 << 3) | field.wire)) value = this.#value(field, depth, undefined);
      else this.#unknown(tag);
    }
    if (reader.at !== end) throw malformed("an entry of a map reaches beyond its end");
    put(into, key, value ?? this.#absent(field, depth));
  }

  #absent(field: Field, depth: number): unknown {
    if (field.message === undefined) return zeroOf(field);
    return this.#nested(field.message, this.#reader.at, depth, undefined);
  }

  #value(field: Field, depth: number, earlier: unknown): unknown {
    const reader = this.#reader;
    switch (field.type) {
      case fieldTypes.string:
        return reader.string();
      case fieldTypes.message:
        return this.#nested(field.message, reader.end(), depth, earlier);
      case fieldTypes.bool:
        return reader.bool();
      case fieldTypes.enum: {
        const number = reader.int32();
        return field.enum.names.get(number) ?? number;
      }
      case fieldTypes.int32:
        return reader.int32();
      case fieldTypes.int64:
        return String(reader.int64());
      case fieldTypes.bytes:
        return toBase64(reader.view());
    }
  }

  #nested(type: MessageType, end: number, depth: number, earlier: unknown): unknown {
    switch (type.wellKnown) {
      case undefined:
        // Repeated occurrences are merged.
        return this.message(type, end, depth, objectOf(earlier));
      case "Struct":
        return this.struct(end, depth, objectOf(earlier));
      case "Value":
        return this.#jsonValue(end, depth);
      case "ListValue":
        return this.#list(end, depth);
      case "Timestamp":
        return this.#time(end, timestampText);
      case "Duration":
        return this.#time(end, durationText);
      case "Any":
        return this.#any(type, end, depth);
    }
  }

  /** Reads the members of a JSON object up to `end`. */
  struct(end: number, depth: number, into: JsonObject): JsonObject {
    if (depth <= 0) throw this.#tooDeep();
    const reader = this.#reader;
    while (reader.at < end) {
      const tag = reader.uint32();
      if (tag === 10) this.#member(reader.end(), depth - 1, into);
      else this.#unknown(tag);
    }
    if (reader.at !== end) throw malformed("a member reaches beyond its object");
    return into;
  }

  #member(end: number, depth: number, into: JsonObject): void {
    const reader = this.#reader;
    let key = "";
    let value: unknown = null;
    while (reader.at < end) {
      const tag = reader.uint32();
      if (tag === 10) key = reader.string();
      else if (tag === 18) value = this.#jsonValue(reader.end(), depth);
      else this.#unknown(tag);
    }
    if (reader.at !== end) throw malformed("a value reaches beyond its member");
    put(into, key, value);
  }

  /** A google.protobuf.Value. Without a kind it is null. */
  #jsonValue(end: number, depth: number): unknown {
    const reader = this.#reader;
    let value: unknown = null;
    while (reader.at < end) {
      const tag = reader.uint32();
      switch (tag) {
        case 8:
          reader.varint64();
          value = null;
          break;
        case 17:
          value = reader.double();
          if (!Number.isFinite(value)) throw malformed("a number that JSON cannot hold");
          break;
        case 26:
          value = reader.string();
          break;
        case 32:
          value = reader.bool();
          break;
        case 42:
          value = this.struct(reader.end(), depth, {});
          break;
        case 50:
          value = this.#list(reader.end(), depth);
          break;
        default:
          this.#unknown(tag);
      }
    }
    if (reader.at !== end) throw malformed("a value reaches beyond its end");
    return value;
  }

  #list(end: number, depth: number): unknown[] {
    if (depth <= 0) throw this.#tooDeep();
    const reader = this.#reader;
    const list: unknown[] = [];
    while (reader.at < end) {
      const tag = reader.uint32();
      if (tag === 10) list.push(this.#jsonValue(reader.end(), depth - 1));
      else this.#unknown(tag);
    }
    if (reader.at !== end) throw malformed("a value reaches beyond its list");
    return list;
  }

  #time(end: number, text: (seconds: bigint, nanos: number) => string | undefined): string {
    const reader = this.#reader;
    let seconds = 0n;
    let nanos = 0;
    while (reader.at < end) {
      const tag = reader.uint32();
      if (tag === 8) seconds = reader.int64();
      else if (tag === 16) nanos = reader.int32();
      else this.#unknown(tag);
    }
    const written = reader.at === end ? text(seconds, nanos) : undefined;
    if (written === undefined) throw malformed("an invalid time");
    return written;
  }

  /** A message of an unknown type stays encoded, in base64. */
  #any(type: MessageType, end: number, depth: number): JsonObject {
    if (depth <= 0) throw this.#tooDeep();
    const reader = this.#reader;
    let url = "";
    let bytes: Uint8Array = reader.bytes.subarray(0, 0);
    while (reader.at < end) {
      const tag = reader.uint32();
      if (tag === 10) url = reader.string();
      else if (tag === 18) bytes = reader.view();
      else this.#unknown(tag);
    }
    if (reader.at !== end) throw malformed("a field reaches beyond its message");
    const content = type.siblings.get(url.slice(url.lastIndexOf("/") + 1));
    if (content === undefined || content.wellKnown !== undefined) return { "@type": url, value: toBase64(bytes) };
    const inner = new Decoder(new Reader(bytes), this.#options);
    return inner.message(content, bytes.length, depth, { "@type": url });
  }

  #unknown(tag: number): void {
    if (tag >>> 3 === 0) throw malformed("a field of number 0");
    this.#reader.skip(tag);
  }

  #tooDeep(): A2AError {
    const { subject = "message", depth = defaultDepth } = this.#options;
    return new A2AError("InvalidRequest", `The ${subject} is nested deeper than ${depth} levels`);
  }
}

function isZero(field: Field, value: unknown): boolean {
  return typeof value === "string" && field.enum?.numbers.get(value) === 0;
}

/** The object that a field already has, or a new one. */
function objectOf(earlier: unknown): JsonObject {
  return isObject(earlier) ? earlier : {};
}

function fillIn({ required }: MessageType, into: JsonObject): void {
  for (const field of required) {
    // The zero of an enumeration means unspecified.
    if (field.name in into || field.enum !== undefined) continue;
    into[field.name] = !field.repeated ? zeroOf(field) : field.message?.mapValue === undefined ? [] : {};
  }
}

/** Sets a member whose name the peer chose. Assigning `__proto__` would change the prototype. */
function put(into: JsonObject, key: string, value: unknown): void {
  if (key !== "__proto__") into[key] = value;
  else Object.defineProperty(into, key, { value, enumerable: true, configurable: true, writable: true });
}
