import type { HistoryEntry, Turn } from "@parley/server";
import { messagesOf } from "../shared/messages.ts";
import type { ClaudeContent, ClaudeImage, ClaudePrompt } from "./port.ts";

/* The message of the turn as a prompt. The session has the earlier conversation. */

/** The content of the turn's message. */
export function contentOf({ message, text, clock }: Turn): ClaudeContent[] {
  const entry: HistoryEntry = { role: "user", text, parts: message.parts, time: clock.now() };
  const content = messagesOf([entry]).flatMap((each) => each.content.map(contentOfPart));
  return content.length > 0 ? content : [{ type: "text", text: "(an empty message)" }];
}

type ChatPart = ReturnType<typeof messagesOf>[number]["content"][number];

const images: readonly ClaudeImage[] = ["image/jpeg", "image/png", "image/gif", "image/webp"];

function contentOfPart(part: ChatPart): ClaudeContent {
  if (part.type === "text") return { type: "text", text: part.text };
  const { data, mediaType, filename } = part;
  const image = images.find((each) => each === mediaType);
  if (image !== undefined) return { type: "image", source: { type: "base64", media_type: image, data } };
  if (mediaType !== "application/pdf") return { type: "text", text: `[File ${filename ?? ""}, ${mediaType}]` };
  const source = { type: "base64", media_type: mediaType, data } as const;
  return { type: "document", source, ...(filename !== undefined && { title: filename }) };
}

/** The prompt as a stream, which stays open until the session ends, so that the session can be interrupted. */
export async function* promptOf(
  content: ClaudeContent[],
  over: Promise<void>,
): AsyncGenerator<ClaudePrompt, void, void> {
  const message: ClaudePrompt["message"] = { role: "user", content };
  yield { type: "user", message, parent_tool_use_id: null, client_composed: true };
  await over;
}
