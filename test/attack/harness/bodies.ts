import type { Part } from "@parley/server";

/* Builds large requests with a single copy. */

export const mebi = 2 ** 20;

export interface Sent {
  /** The command for the agent. */
  readonly words: string;
  /** The size of a file in the message, in base64 characters. */
  readonly file?: number;
  /** An additional part of the message. */
  readonly part?: Part;
  readonly taskId?: string;
  readonly returnImmediately?: boolean;
}

/** Returns the body of a `POST /message:send`. */
export function sendBody({ words, file = 0, part, taskId, returnImmediately = false }: Sent): Buffer {
  const parts: Part[] = [{ text: words }];
  if (part !== undefined) parts.push(part);
  if (file > 0) parts.push({ raw: "@", mediaType: "application/octet-stream" });
  const message = { messageId: crypto.randomUUID(), role: "ROLE_USER", ...(taskId !== undefined && { taskId }), parts };
  const [head = "", tail] = JSON.stringify({
    message,
    // The test does not need the message in the response.
    configuration: { returnImmediately, historyLength: 0 },
  }).split("@");
  if (tail === undefined) return Buffer.from(head);
  return Buffer.concat([Buffer.from(head), Buffer.alloc(file - (file % 4), "A"), Buffer.from(tail)]);
}

const json = { "content-type": "application/json", "a2a-version": "1.0" };

/** Sends a message over REST. Returns the status and body of the response. */
export async function send(url: string, sent: Sent): Promise<Answer> {
  const response = await fetch(`${url}/message:send`, { method: "POST", headers: json, body: sendBody(sent) });
  return { status: response.status, body: (await response.json()) as Answer["body"] };
}

export interface Answer {
  readonly status: number;
  readonly body: {
    readonly task?: { readonly id: string; readonly status: { readonly state: string } };
    readonly message?: { readonly parts: readonly { readonly text: string }[] };
    readonly error?: { readonly message: string; readonly details?: unknown };
  };
}

/** Creates a task. Returns the task's id. */
export async function newTask(url: string, sent: Sent): Promise<string> {
  const { status, body } = await send(url, sent);
  if (body.task === undefined) throw new Error(`No task was made: ${status} ${JSON.stringify(body).slice(0, 500)}`);
  return body.task.id;
}
