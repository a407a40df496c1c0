import { bytesOf, type Part } from "@parley/a2a/model";
import type { HistoryEntry } from "@parley/server";

/* The conversation as model messages. */

/** A `ModelMessage` with texts and files. */
export interface ChatMessage {
  readonly role: "user" | "assistant";
  readonly content: readonly ChatPart[];
}

type ChatPart =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "file"; readonly data: string; readonly mediaType: string; readonly filename?: string };

/** Joins consecutive entries of the same role, because some models reject them. Omits empty entries. */
export function messagesOf(history: readonly HistoryEntry[]): readonly ChatMessage[] {
  const messages: { role: ChatMessage["role"]; content: ChatPart[] }[] = [];
  for (const { role: from, parts } of history) {
    const role = from === "user" ? "user" : "assistant";
    const content = parts.flatMap((part) => partOf(part, role));
    const last = messages.at(-1);
    if (last?.role === role) last.content.push(...content);
    else if (content.length > 0) messages.push({ role, content });
  }
  return messages;
}

/** URLs become text, because the AI SDK would fetch URLs that the caller chose. The agent's own files become text too, as models cannot read them. */
function partOf(part: Part, role: ChatMessage["role"]): readonly ChatPart[] {
  const { filename, mediaType = "application/octet-stream" } = part;
  if (part.text !== undefined) return part.text === "" ? [] : [{ type: "text", text: part.text }];
  // Omits a form, which is for the program that shows it.
  if (part.data !== undefined)
    return mediaType.startsWith("application/schema+json") ? [] : [{ type: "text", text: JSON.stringify(part.data) }];
  if (part.url !== undefined) return [{ type: "text", text: `[File ${filename ?? ""} at ${part.url}]` }];
  if (/^(text\/|application\/json)/.test(mediaType)) {
    const text = new TextDecoder().decode(bytesOf(part));
    return [{ type: "text", text: filename === undefined ? text : `[File ${filename}]\n${text}` }];
  }
  if (role === "assistant") return [{ type: "text", text: `[File ${filename ?? ""}, ${mediaType}]` }];
  return [{ type: "file", data: part.raw, mediaType, ...(filename !== undefined && { filename }) }];
}
