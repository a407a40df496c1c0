import { isObject } from "@parley/a2a/internal/model/schema";
import { fromBase64, parseDuration, parseTimestamp } from "./text.ts";
import { fieldTypes, type Field, type JsonObject, type MessageType } from "./types.ts";
import { Writer } from "./wire.ts";

/**
 * Encodes a ProtoJSON value. Omits unknown members and null.
 *
 * @throws TypeError for a value that does not match the type. Callers validate values first.
 */
export function encode(type: MessageType, value: unknown): Uint8Array {
  const writer = new Writer();
  write(writer, type, value);
  return writer.written();
}

/** Appends the fields of a message to `writer`. */
export function write(writer: Writer, type: MessageType, value: unknown): void {
  switch (type.wellKnown) {
    case undefined:
      return writeFields(writer, type, objectOf(value));
    case "Struct":
      return writeStruct(writer, objectOf(value));
    case "Value":
      return writeJson(writer, value);
    case "ListValue":
      return writeList(writer, listOf(value));
    case "Timestamp":
      return writeTime(writer, parseTimestamp(textOf(value)));
    case "Duration":
      return writeTime(writer, parseDuration(textOf(value)));
    case "Any":
      return writeAny(writer, type, objectOf(value));
  }
}

function writeFields(writer: Writer, type: MessageType, value: JsonObject): void {
  // The fastest loop over members. JSON objects inherit no enumerable members.
  for (const name in value) {
    const item = value[name];
    if (item === undefined) continue;
    const field = type.byName.get(name);
    if (field === undefined || (item === null && field.message?.wellKnown !== "Value")) continue;
    if (field.repeated) writeRepeated(writer, field, item);
    else if (field.presence || !isDefault(field, item)) {
      writer.uint32(field.tag);
      writeValue(writer, field, item);
    }
  }
}

function isDefault(field: Field, item: unknown): boolean {
  if (item === "" || item === 0 || item === false) return true;
  if (typeof item !== "string") return false;
  return field.type === fieldTypes.int64 ? item === "0" : field.enum?.numbers.get(item) === 0;
}

function writeRepeated(writer: Writer, field: Field, value: unknown): void {
  const mapValue = field.message?.mapValue;
  if (mapValue !== undefined) {
    writeMap(writer, field.tag, mapValue, objectOf(value));
    return;
  }
  const list = listOf(value);
  if (!field.packed) {
    for (const item of list) {
      writer.uint32(field.tag);
      writeValue(writer, field, item);
    }
  } else if (list.length > 0) {
    writer.uint32(field.tag);
    const opened = writer.open();
    for (const item of list) writeValue(writer, field, item);
    writer.close(opened);
  }
}

function writeMap(writer: Writer, tag: number, valueField: Field, value: JsonObject): void {
  for (const key of Object.keys(value)) {
    writer.uint32(tag);
    const opened = writer.open();
    writer.uint8(10);
    writer.string(key);
    writer.uint32(valueField.tag);
    writeValue(writer, valueField, value[key]);
    writer.close(opened);
  }
}

function writeValue(writer: Writer, field: Field, item: unknown): void {
  switch (field.type) {
    case fieldTypes.string:
      return writer.string(textOf(item));
    case fieldTypes.message: {
      const opened = writer.open();
      write(writer, field.message, item);
      writer.close(opened);
      return;
    }
    case fieldTypes.bool:
      return writer.uint8(item === true ? 1 : 0);
    case fieldTypes.enum:
      return writer.int32(
        typeof item === "number"
          ? item
          : numberOf(typeof item === "string" ? field.enum.numbers.get(item) : undefined, item),
      );
    case fieldTypes.int32:
      return writer.int32(numberOf(Number(item), item));
    case fieldTypes.int64:
      return writer.int64(BigInt(typeof item === "number" ? item : textOf(item)));
    case fieldTypes.bytes:
      return writer.blob(fromBase64(textOf(item)));
  }
}

function writeStruct(writer: Writer, value: JsonObject): void {
  for (const key of Object.keys(value)) {
    const item = value[key];
    if (item === undefined) continue;
    writer.uint8(10);
    const member = writer.open();
    writer.uint8(10);
    writer.string(key);
    writer.uint8(18);
    const opened = writer.open();
    writeJson(writer, item);
    writer.close(opened);
    writer.close(member);
  }
}

/** The fields of a google.protobuf.Value. */
function writeJson(writer: Writer, value: unknown): void {
  switch (typeof value) {
    case "string":
      writer.uint8(26);
      writer.string(value);
      return;
    case "number":
      if (!Number.isFinite(value)) throw new TypeError(`${value} is not a number in JSON`);
      writer.uint8(17);
      writer.double(value);
      return;
    case "boolean":
      writer.uint8(32);
      writer.uint8(value ? 1 : 0);
      return;
    default: {
      if (value === null || value === undefined) {
        writer.uint8(8);
        writer.uint8(0);
        return;
      }
      writer.uint8(Array.isArray(value) ? 50 : 42);
      const opened = writer.open();
      if (Array.isArray(value)) writeList(writer, value);
      else writeStruct(writer, objectOf(value));
      writer.close(opened);
    }
  }
}

function writeList(writer: Writer, list: readonly unknown[]): void {
  for (const item of list) {
    writer.uint8(10);
    const opened = writer.open();
    writeJson(writer, item);
    writer.close(opened);
  }
}

function writeTime(writer: Writer, { seconds, nanos }: { readonly seconds: number; readonly nanos: number }): void {
  if (seconds !== 0) {
    writer.uint8(8);
    writer.int64(BigInt(seconds));
  }
  if (nanos !== 0) {
    writer.uint8(16);
    writer.int32(nanos);
  }
}

/** An Any in ProtoJSON: `@type` and the members of the message, or `value` with the bytes of an unknown type. */
function writeAny(writer: Writer, type: MessageType, value: JsonObject): void {
  const url = textOf(value["@type"]);
  const content = type.siblings.get(url.slice(url.lastIndexOf("/") + 1));
  writer.uint8(10);
  writer.string(url);
  writer.uint8(18);
  if (content === undefined || content.wellKnown !== undefined) {
    writer.blob(fromBase64(textOf(value["value"] ?? "")));
    return;
  }
  const opened = writer.open();
  writeFields(writer, content, value);
  writer.close(opened);
}

function textOf(value: unknown): string {
  if (typeof value === "string") return value;
  throw new TypeError(`${typeof value} where a string is expected`);
}

function numberOf(value: number | undefined, from: unknown): number {
  if (value !== undefined && Number.isInteger(value) && value === (value | 0)) return value;
  throw new TypeError(`${String(from)} where a 32-bit number or an enum name is expected`);
}

function objectOf(value: unknown): JsonObject {
  if (isObject(value)) return value;
  throw new TypeError(`${value === null ? "null" : typeof value} where a message is expected`);
}

function listOf(value: unknown): readonly unknown[] {
  if (Array.isArray(value)) return value;
  throw new TypeError(`${typeof value} where a list is expected`);
}
