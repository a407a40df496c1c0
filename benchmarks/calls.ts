import type { Address } from "./servers/control.ts";
import { idMark, type Request } from "./load/http.ts";

// The requests of the cases, which all three servers support.

export type Binding = "jsonRpc" | "rest";

export function message(text: string): object {
  return { message: { messageId: idMark, role: "ROLE_USER", parts: [{ text }] } };
}

/** A message with a command for the agent, over either binding. */
export function send({ jsonRpc, rest }: Address, text: string, binding: Binding = "jsonRpc"): Request {
  if (binding === "jsonRpc") return call(jsonRpc, "SendMessage", message(text));
  return { method: "POST", url: `${rest}/message:send`, body: JSON.stringify(message(text)) };
}

export function sendStreaming({ jsonRpc }: Address, text: string): Request {
  return call(jsonRpc, "SendStreamingMessage", message(text));
}

export function call(url: string, method: string, params: object): Request {
  return { method: "POST", url, body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }) };
}

/** Calls a method once, to prepare a case. */
export async function once<T>(server: Address, method: string, params: object): Promise<T> {
  const { url, body = "" } = call(server.jsonRpc, method, params);
  const response = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json", "a2a-version": "1.0" },
    body: body.replace(idMark, crypto.randomUUID()),
  });
  const answer = (await response.json()) as { result?: T; error?: unknown };
  if (answer.result === undefined) throw new Error(`${method} failed: ${JSON.stringify(answer.error)}`);
  return answer.result;
}
