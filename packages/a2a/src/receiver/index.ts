export type * from "./port.ts";
export { webhookMemory, type WebhookMemoryOptions } from "./memory.ts";
export { createReceiver } from "./receiver.ts";
