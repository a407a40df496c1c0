import type { Field, MessageType } from "./types.ts";

/** A path such as `message.parts[0].mediaType`, with the names of the .proto file: `message.parts[0].media_type`. */
export function protoPath(path: string, type: MessageType): string {
  return renamed(path, type, ({ protoName }) => protoName);
}

/** A path in either spelling, with the names of JSON. */
export function jsonPath(path: string, type: MessageType): string {
  return renamed(path, type, ({ name }) => name);
}

/** Names are looked up, not converted: what is inside of maps and JSON values, or unknown, has names of its own. */
function renamed(path: string, type: MessageType, nameOf: (field: Field) => string): string {
  const [name = ""] = path.split(/[.[]/, 1);
  const [index = ""] = /^(?:\[\d+\])*/.exec(path.slice(name.length)) ?? [];
  const rest = path.slice(name.length + index.length);
  const field = type.byName.get(name) ?? type.byNumber.find((each) => each?.protoName === name);
  if (field === undefined) return path;
  const inner = field.message;
  const begun = nameOf(field) + index;
  if (inner === undefined || inner.isMapEntry || !rest.startsWith(".")) return begun + rest;
  return `${begun}.${renamed(rest.slice(1), inner, nameOf)}`;
}
