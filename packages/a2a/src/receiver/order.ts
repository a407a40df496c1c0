import { A2AError, hasCode, type StreamResponse, type Task } from "../model/index.ts";
import { referenceKey } from "../webhooks/index.ts";
import type { HandledDelivery, TaskReader, WebhookDelivery, WebhookListener, WebhookMemory } from "./port.ts";
import { BoundedMap, memoryOf } from "../base/bounded-map.ts";

interface Accepted {
  readonly event: StreamResponse;
  readonly delivery: WebhookDelivery;
  readonly sender: string;
  /** Absent: the sender sends no id, so repetitions cannot be detected. */
  readonly handled: HandledDelivery | undefined;
  readonly listener: WebhookListener;
  readonly client: TaskReader | undefined;
  readonly bytes: number;
}

/** Passes deliveries to the listener, one at a time for each task, in order of arrival. */
export class Deliveries {
  readonly #memory: WebhookMemory;
  readonly #maxBytes: number;
  #bytes = 0;
  /** The last delivery of each task that has one in progress. Tasks of two senders may have the same id. */
  readonly #last = new Map<string, Promise<void>>();
  /** Deliveries in progress by their senders and ids. */
  readonly #running = new Map<string, Promise<void>>();

  constructor(memory: WebhookMemory, maxBytes: number) {
    this.#memory = memory;
    this.#maxBytes = maxBytes;
  }

  /**
   * Resolves when the listener has handled the delivery, now or earlier. A repetition of a delivery in progress waits for it.
   *
   * @throws A2AError `Unavailable` if too many deliveries wait, or the task could not be read. Rejects with the listener's error.
   */
  handle(accepted: Accepted): Promise<void> {
    const { handled, sender, bytes } = accepted;
    const key = handled && JSON.stringify([sender, handled.id]);
    const running = key === undefined ? undefined : this.#running.get(key);
    if (running !== undefined) return running;
    if (this.#bytes + bytes > this.#maxBytes) {
      throw new A2AError("Unavailable", "Too many webhooks are pending", { retryAfter: 1 });
    }
    this.#bytes += bytes;
    const task = JSON.stringify([sender, accepted.delivery.taskId]);
    const before = this.#last.get(task);
    const done = before === undefined ? this.#run(accepted) : before.then(() => this.#run(accepted));
    const over = done.then(ignore, ignore).then(() => {
      this.#bytes -= bytes;
      if (key !== undefined) this.#running.delete(key);
      if (this.#last.get(task) === over) this.#last.delete(task);
    });
    this.#last.set(task, over);
    if (key !== undefined) this.#running.set(key, done);
    return done;
  }

  /** Resolves when no delivery is in progress. */
  async idle(): Promise<void> {
    while (this.#last.size > 0) await Promise.all(this.#last.values());
  }

  async #run({ event, delivery, handled, listener, client }: Accepted): Promise<void> {
    const known = handled && (await this.#memory.recall(handled));
    if (known?.seen === true) return;
    const missed = handled?.sequence === undefined ? 0 : handled.sequence - 1 - (known?.last ?? 0);
    // The task that filled the gap already contained it. A delivery with the last number but another id passes, because it has more content.
    if (missed < -1 && client !== undefined) return;
    const why: "missed" | "reference" | undefined =
      missed > 0 ? "missed" : isReference(event) ? "reference" : undefined;
    const task = why && client && (await readTask(client, delivery.taskId));
    const told = {
      ...delivery,
      ...(missed > 0 && { missed }),
      ...(task !== undefined && why !== undefined && { fetched: why }),
    };
    try {
      await listener(task === undefined ? event : { task }, told);
    } catch (cause) {
      // For any error of the listener, the sender must retry.
      throw new A2AError("InternalError", "The webhook could not be handled", { cause });
    }
    // Remember it only now, so that the sender repeats deliveries that the listener did not handle.
    if (handled !== undefined) await this.#memory.remember(handled);
  }
}

function ignore(): void {}

function isReference({ task, message, statusUpdate, artifactUpdate }: StreamResponse): boolean {
  const { metadata } = task ?? message ?? statusUpdate ?? artifactUpdate ?? {};
  const ofArtifact = artifactUpdate?.artifact.metadata;
  return [metadata, ofArtifact].some((each) => each !== undefined && Object.hasOwn(each, referenceKey));
}

/** The current task; `undefined` if the agent no longer has it, so that only the delivery is left. */
async function readTask(client: TaskReader, id: string): Promise<Task | undefined> {
  try {
    return await client.getTask(id);
  } catch (cause) {
    if (hasCode(cause, "TaskNotFound")) return undefined;
    throw new A2AError("Unavailable", "The task of the webhook cannot be read now", { cause, retryAfter: 5 });
  }
}

/** Options of `webhookMemory()`. */
export interface WebhookMemoryOptions {
  /** Maximum bytes of the memory. Default 16 MiB: about 30,000 deliveries. */
  readonly bytes?: number;
}

/**
 * Remembers deliveries in this process, and forgets the oldest first. It remembers only deliveries of trusted senders,
 * so others cannot make it forget.
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
