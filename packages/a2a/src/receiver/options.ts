import { invalidParams, type A2AError } from "../model/index.ts";
import type { WebhookReceiverOptions } from "./port.ts";

/**
 * Checks options that would else fail with the first delivery, where nobody looks.
 *
 * @throws A2AError `InvalidParams` with the field that is wrong.
 */
export function checkReceiver({ accept, client, memory, onEvent, tolerance }: WebhookReceiverOptions): void {
  if ((accept as unknown) === undefined) throw wrongOption("accept", "must name who is trusted");
  if (client !== undefined && typeof client.getTask !== "function")
    throw wrongOption("client", "must be a client. connect() returns a promise of one: await it");
  if (memory !== undefined && typeof memory.recall !== "function")
    throw wrongOption("memory", "must be a memory. sqliteWebhookMemory() returns a promise of one: await it");
  if (onEvent !== undefined && typeof onEvent !== "function") throw wrongOption("onEvent", "must be a function");
  if (tolerance !== undefined && !(tolerance >= 0))
    throw wrongOption("tolerance", "must be a number of milliseconds, at least 0");
}

/** The error for an option of a receiver. */
export function wrongOption(field: string, description: string): A2AError {
  return invalidParams([{ field, description }], `This receiver cannot work: ${field} ${description}`);
}
