import type { JsonObject, JsonValue } from "@parley/a2a/model";
import { utf8Length } from "@parley/a2a/internal/base/bytes";
import { jsonTextOf } from "@parley/a2a/internal/base/json-text";
import { canonicalJson } from "@parley/a2a/internal/jws/jcs";
import type { McpResult } from "./port.ts";
import { cutBytes } from "../server/skills.ts";

/* Reads data from servers. The data is untrusted, so every member may have the wrong type. */

export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A value as JSON. `undefined` if it is not valid JSON. */
export function jsonOf(value: unknown): JsonValue | undefined {
  return value === undefined ? undefined : (JSON.parse(JSON.stringify(value)) as JsonValue);
}

/** The length of a value as JSON. `Infinity` if the value is nested too deeply; this limit does not depend on the JavaScript engine. */
export function bytesOf(value: unknown): number {
  if (value === undefined) return 0;
  try {
    return utf8Length(jsonTextOf(value));
  } catch {
    return Infinity;
  }
}

/** SHA-256 of a tool's declaration. */
export async function digestOf(tool: JsonObject): Promise<string> {
  const { name, title, description, inputSchema, outputSchema, annotations } = tool;
  const said = { name, title, description, inputSchema, outputSchema, annotations };
  const text = canonicalJson(jsonOf(said));
  const bytes = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text)));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** A result within its limit. Replaces content that does not fit with a note. */
export function resultOf(value: unknown, maxBytes: number): McpResult {
  const { content: given, structuredContent, isError } = isObject(value) ? value : {};
  const content: JsonObject[] = [];
  let room = maxBytes;
  const add = (block: JsonObject): void => {
    room -= bytesOf(block);
    content.push(block);
  };
  for (const each of Array.isArray(given) ? given : []) {
    const block: unknown = each;
    if (!isObject(block)) continue;
    const size = bytesOf(block);
    if (size <= room) add(block);
    else if (typeof block["text"] === "string" && room > 1000) {
      // Reserves space for escapes, which can multiply the size of a text.
      const text = cutBytes(block["text"], Math.floor((room - 500) / 6));
      add({ type: "text", text: `${text}\n[Truncated: the result has ${size} bytes]` });
    } else if (room > 200) add({ type: "text", text: `[Omitted: a ${kindOf(block)} of ${size} bytes is too large]` });
    else break;
  }
  const structured = structuredContent !== undefined && bytesOf(structuredContent) <= room;
  const text = content.map((block) => (typeof block["text"] === "string" ? block["text"] : `[${kindOf(block)}]`));
  return {
    text: text.join("\n"),
    content,
    ...(structured && { structuredContent }),
    isError: isError === true,
  };
}

function kindOf({ type }: JsonObject): string {
  return typeof type === "string" && /^[\w-]{1,30}$/.test(type) ? type : "part";
}
