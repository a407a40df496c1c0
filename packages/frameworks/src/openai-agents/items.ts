import type { AgentInputItem } from "@openai/agents";
import type { ChatMessage } from "../shared/messages.ts";

/* The conversation as model input. */

type UserContent = Exclude<Extract<AgentInputItem, { readonly role: "user" }>["content"], string>;

export function itemsOf(messages: readonly ChatMessage[]): AgentInputItem[] {
  return messages.map(({ role, content }): AgentInputItem => {
    if (role === "user") return { role, content: content.map(inputOf) };
    const texts = content.flatMap((part) => (part.type === "text" ? [part.text] : []));
    return { role, status: "completed", content: texts.map((text) => ({ type: "output_text", text })) };
  });
}

function inputOf(part: ChatMessage["content"][number]): UserContent[number] {
  if (part.type === "text") return { type: "input_text", text: part.text };
  const { data, mediaType, filename } = part;
  const url = `data:${mediaType};base64,${data}`;
  if (mediaType.startsWith("image/")) return { type: "input_image", image: url };
  return { type: "input_file", file: url, ...(filename !== undefined && { filename }) };
}
