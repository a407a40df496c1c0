import { BoundedMap, memoryOf } from "../base/bounded-map.ts";
import type { HandledDelivery, WebhookMemory } from "./port.ts";

/** Options of `webhookMemory()`. */
export interface WebhookMemoryOptions {
  /** Most bytes that it takes. Default 16 MiB: about 30,000 deliveries. */
  readonly bytes?: number;
}

/**
 * Remembers deliveries in this process. What was remembered first is forgotten first. Only deliveries of trusted senders are
 * remembered, so nobody else can make it forget.
 */
export function webhookMemory({ bytes = 16 << 20 }: WebhookMemoryOptions = {}): WebhookMemory {
  const seen = new BoundedMap<true>({ bytes: bytes / 2, bytesOf: (key) => memoryOf(key) });
  const latest = new BoundedMap<number>({ bytes: bytes / 2, bytesOf: (key) => memoryOf(key) });
  return {
    recall({ id, stream, ...from }) {
      const last = stream === undefined ? undefined : latest.get(keyOf(from, stream));
      const known = seen.get(keyOf(from, id)) === true;
      return Promise.resolve({ seen: known, ...(last !== undefined && { last }) });
    },
    remember({ id, stream, sequence, ...from }) {
      seen.set(keyOf(from, id), true);
      if (stream !== undefined && sequence !== undefined) {
        const key = keyOf(from, stream);
        latest.set(key, Math.max(sequence, latest.get(key) ?? 0));
      }
      return Promise.resolve();
    },
  };
}

function keyOf({ receiver, sender }: Pick<HandledDelivery, "receiver" | "sender">, name: string): string {
  return JSON.stringify([receiver, sender, name]);
}
