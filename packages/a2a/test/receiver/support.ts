import type { Logger } from "../../src/base/index.ts";
import type { StreamResponse, TaskState } from "../../src/model/index.ts";
import type { WebhookDelivery, WebhookReceiver, WebhookReceiverOptions } from "../../src/receiver/port.ts";
import { webhookReceiver } from "../../src/webhooks.ts";
import { deliveryId, signWebhook, webhookKey } from "../../src/webhooks/index.ts";

/** A shared secret of 24 bytes, and a second shared secret. */
export const secret = `whsec_${Buffer.alloc(24, 1).toString("base64")}`;
export const otherSecret = `whsec_${Buffer.alloc(24, 2).toString("base64")}`;

export const url = "https://app.example.com/hooks/a2a";

export function status(state: TaskState, taskId = "t1"): StreamResponse {
  return { statusUpdate: { taskId, contextId: "c1", status: { state } } };
}

export interface Sent {
  readonly key?: string | undefined;
  readonly sequence?: number;
  /** The `seq` of the event. By default, the same as `sequence`. */
  readonly seq?: number;
  readonly stream?: string;
  readonly id?: string;
  /** The time in seconds since the Unix epoch. */
  readonly timestamp?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly contentType?: string;
  readonly method?: string;
  readonly path?: string;
  /** A body that is sent instead of the signed body. */
  readonly tampered?: string;
}

let ids = 0;

/** Creates the request of a sender that signs with a shared secret, unless `sent` says otherwise. */
async function requestOf(event: unknown, sent: Sent = {}): Promise<Request> {
  const { timestamp = Math.floor(Date.now() / 1000), sequence, stream = "config" } = sent;
  const id =
    sent.id ?? (sequence === undefined ? `msg-${(ids += 1)}` : deliveryId(stream, sequence, sent.seq ?? sequence));
  const body = typeof event === "string" ? event : JSON.stringify(event);
  const key = "key" in sent ? sent.key : secret;
  const signature = key === undefined ? undefined : await signWebhook([await webhookKey(key)], { id, timestamp, body });
  return new Request(new URL(sent.path ?? url, url), {
    method: sent.method ?? "POST",
    headers: {
      "content-type": sent.contentType ?? "application/a2a+json",
      ...(signature !== undefined && {
        "webhook-id": id,
        "webhook-timestamp": String(timestamp),
        "webhook-signature": signature,
      }),
      ...sent.headers,
    },
    ...(sent.method !== "GET" && { body: sent.tampered ?? body }),
  });
}

/** A receiver, and the events that the receiver has passed on. */
export interface Received {
  readonly receiver: WebhookReceiver;
  readonly events: StreamResponse[];
  readonly deliveries: WebhookDelivery[];
  send(event: unknown, sent?: Sent): Promise<Response>;
}

export function receive(options: Partial<WebhookReceiverOptions> = {}): Received {
  const events: StreamResponse[] = [];
  const deliveries: WebhookDelivery[] = [];
  const receiver = webhookReceiver({
    url,
    accept: { secret },
    onEvent(event, delivery) {
      events.push(event);
      deliveries.push(delivery);
    },
    ...options,
  });
  return {
    receiver,
    events,
    deliveries,
    send: async (event, sent) => receiver.fetch(await requestOf(event, sent)),
  };
}

/** Returns the error message in a response. */
export async function reasonOf(response: Response): Promise<string> {
  const { error } = (await response.json()) as { readonly error: { readonly message: string } };
  return error.message;
}

/** Creates a logger that records everything as text. */
export function textLogger(): { readonly logger: Logger; readonly text: () => string } {
  const lines: string[] = [];
  const keep = (message: string, fields: object = {}): void => {
    const cause = (fields as { cause?: unknown }).cause;
    lines.push(message, JSON.stringify(fields), cause instanceof Error ? String(cause.stack) : "");
  };
  return { logger: { debug: keep, info: keep, warn: keep, error: keep }, text: () => lines.join("\n") };
}
