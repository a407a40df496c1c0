import { utf8Length } from "../base/index.ts";
import { invalidParams, type A2AError, type JsonValue, type Message } from "../model/index.ts";

/** Whether a text takes more bytes than that. Not counted where its length tells. */
export function exceeds(text: string, bytes: number): boolean {
  return text.length * 3 > bytes && utf8Length(text) > bytes;
}

/** About how much memory a message takes: its characters. Never more than the bytes of its JSON, and cheaply found. */
export function sizeOf({ parts, metadata }: Pick<Message, "parts" | "metadata">): number {
  let size = 0;
  for (const { text, raw, url, data, metadata: own } of parts) {
    size += text?.length ?? raw?.length ?? url?.length ?? 0;
    if (data !== undefined) size += sizeOfValue(data);
    if (own !== undefined) size += sizeOfValue(own);
  }
  return metadata === undefined ? size : size + sizeOfValue(metadata);
}

function sizeOfValue(value: JsonValue | undefined): number {
  if (typeof value === "string") return value.length;
  if (typeof value !== "object" || value === null) return 1;
  let size = 2;
  for (const [name, member] of Object.entries(value)) size += name.length + sizeOfValue(member);
  return size;
}

/** A message that does not fit into its task. */
export function taskIsFull(taskBytes: number): A2AError {
  const description = `does not fit: a task takes ${taskBytes} bytes, all of its messages and results together`;
  return invalidParams([{ field: "message.parts", description }], "This task is full");
}
