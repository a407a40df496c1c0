import { GrowingBytes } from "@parley/a2a/internal/protocol/index";
import type { RouteMount } from "@parley/server/internal/handler";
import { webhooks } from "./api.ts";
import { captured, masked } from "./recording.ts";
import type { WireLog } from "./wire-log.ts";

/** Maximum bytes of a webhook. Servers send references for larger events. */
const maxBytes = 1 << 20;

/** The route of `Inspector.webhooks`. */
export function webhookRoute(log: WireLog, path: string): RouteMount {
  return {
    path,
    access: "anyone",
    async answer(request, { below }) {
      if (below !== "" || request.method !== "POST") return undefined;
      const bytes = await bytesOf(request, maxBytes);
      const text = new TextDecoder().decode(bytes);
      const exchange = log.nextExchange();
      const headers = masked([...request.headers], {});
      const body = captured(text, bytes?.byteLength ?? 0);
      // The path is a secret: anyone who knows it can write to the log.
      const url = `${new URL(request.url).origin}/webhooks/•••`;
      log.add({ kind: "request", exchange, agent: webhooks, method: "POST", url, headers, body, operation: "webhook" });
      const response = bytes === undefined ? new Response(null, { status: 413 }) : answerTo(text);
      log.add({ kind: "response", exchange, status: response.status, headers: [...response.headers] });
      log.add({ kind: "end", exchange });
      return response;
    },
  };
}

/** Answers the challenge that a server may send at registration (`PushOptions.challenge`). */
function answerTo(text: string): Response {
  try {
    const read: unknown = JSON.parse(text);
    const asked = typeof read === "object" && read !== null && "challenge" in read ? read.challenge : undefined;
    if (typeof asked === "string") return Response.json({ challenge: asked });
  } catch {
    // Not JSON, so not a challenge.
  }
  return new Response(null, { status: 204 });
}

/** Reads a body. `undefined`: it has more than `maxBytes`. The buffer doubles in size, because a sender may send one byte at a time. */
export async function bytesOf(
  { body }: Pick<Request | Response, "body">,
  maxBytes: number,
): Promise<Uint8Array | undefined> {
  const bytes = new GrowingBytes(maxBytes);
  if (body === null) return bytes.view();
  const reader: ReadableStreamDefaultReader<Uint8Array> = body.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return bytes.view();
    if (bytes.length + value.byteLength > maxBytes) {
      await reader.cancel();
      return undefined;
    }
    bytes.append(value);
  }
}
