export type * from "./port.ts";
export { webhookMemory, type WebhookMemoryOptions } from "./order.ts";
export { createReceiver } from "./receiver.ts";
