import type { JsonObject, JsonValue } from "@parley/a2a/model";
import { isList, isObject } from "../shared/json.ts";

/* JSON with equal parts deduplicated, because a Mastra snapshot has each message up to a dozen times. */

/** The member of a reference that has the index of the part. */
const refKey = "$part";
/** Shorter parts stay inline. */
const minLength = 64;

export function pack(json: JsonValue): JsonObject {
  const parts: JsonValue[] = [];
  const places = new Map<string, number>();
  const packed = (value: JsonValue): JsonValue => {
    const made = mapped(value, packed);
    const text = JSON.stringify(made);
    // An object with such a member of its own always becomes a part.
    if (text.length < minLength && !(isObject(made) && refKey in made)) return made;
    const place = places.get(text) ?? parts.push(made) - 1;
    places.set(text, place);
    return { [refKey]: place };
  };
  return { root: packed(json), parts };
}

/** Reverses `pack()`. */
export function unpack({ root = null, parts }: JsonObject): JsonValue {
  const all = isList(parts) ? parts : [];
  const whole = (value: JsonValue): JsonValue => {
    const place = isObject(value) ? value[refKey] : undefined;
    return mapped(typeof place === "number" ? (all[place] ?? null) : value, whole);
  };
  return whole(root);
}

function mapped(value: JsonValue, change: (member: JsonValue) => JsonValue): JsonValue {
  if (isList(value)) return value.map(change);
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, change(member)]));
}
