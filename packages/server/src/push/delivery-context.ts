import type { Room } from "../store/index.ts";
import type { WebhookCodec } from "./body.ts";
import type { EventSource } from "./events.ts";
import type { OpenSecrets, OutboxHost, PushSigner } from "./port.ts";
import type { Post } from "./request.ts";

/** What all deliveries of a process share. */
export interface DeliveryContext
  extends
    Post,
    Pick<OutboxHost, "append" | "audit" | "blobs" | "extensionsOf" | "holders" | "logger" | "observer" | "store"> {
  readonly events: Omit<EventSource, "room">;
  /** Memory for what one step reads, of the budget of this owner. */
  readonly room: (owner: string) => Room & { end(): void };
  readonly open: OpenSecrets;
  readonly signer: PushSigner;
  readonly codecOf: (version: string) => WebhookCodec;
  /** Waits between attempts, in milliseconds. */
  readonly waits: readonly number[];
  /** How long a request may take, in milliseconds. */
  readonly timeout: number;
  /** Whether the server stops: no more requests begin. */
  readonly stopping: () => boolean;
}
