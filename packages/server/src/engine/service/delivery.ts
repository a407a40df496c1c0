import { BoundedMap, memoryOf } from "@parley/a2a/internal/base/bounded-map";
import type { ListTasksResponse, StreamResponse, Task } from "@parley/a2a/internal/model/index";
import {
  mapItems,
  Payload,
  TextPayload,
  type Reply,
  type StreamItem,
  type StreamReply,
  type UnaryName,
} from "@parley/a2a/internal/protocol/index";
import type { Deliver, ExtensionHooks } from "@parley/a2a/internal/extensions/hooks";

/** How many bytes of delivered events are kept for other readers. */
const keptBytes = 4 << 20;

/** Applies `onDeliver` of the active extensions to answers and events. */
export class Delivery {
  readonly #hooks: ExtensionHooks;
  /** Delivered events as JSON, by task, `seq` and active extensions. */
  readonly #kept = new BoundedMap<string>({ bytes: keptBytes, bytesOf: memoryOf });

  constructor(hooks: ExtensionHooks) {
    this.#hooks = hooks;
  }

  reply<T>(operation: UnaryName, reply: Reply<T>, active: readonly string[]): Reply<T> {
    const deliver = this.#hooks.deliver(active);
    if (deliver === undefined) return reply;
    return { ...reply, payload: reply.payload.map((value) => deliveredAnswer(operation, value, deliver) as T) };
  }

  batches(batches: StreamReply["batches"], active: readonly string[]): StreamReply["batches"] {
    const deliver = this.#hooks.deliver(active);
    if (deliver === undefined) return batches;
    const activation = [...active].sort().join(" ");
    return mapItems(batches, (item) => ({ ...item, payload: this.#payload(item, deliver, activation) }));
  }

  #payload({ payload, seq }: StreamItem, deliver: Deliver, activation: string): Payload<StreamResponse> {
    const event = payload.value;
    const taskId = event.statusUpdate?.taskId ?? event.artifactUpdate?.taskId;
    // A snapshot of a task has the `seq` of its last event, so that number does not identify it.
    if (seq === undefined || taskId === undefined) return new Payload(deliver(event));
    const key = `${taskId}\0${seq}\0${activation}`;
    const kept = this.#kept.get(key);
    if (kept !== undefined) return new TextPayload(kept);
    const json = JSON.stringify(deliver(event));
    this.#kept.set(key, json);
    return new TextPayload(json);
  }
}

function deliveredAnswer(operation: UnaryName, value: unknown, deliver: Deliver): unknown {
  const deliveredTask = (task: Task): Task => deliver({ task }).task as Task;
  switch (operation) {
    case "SendMessage":
      return deliver(value as StreamResponse);
    case "GetTask":
    case "CancelTask":
      return deliveredTask(value as Task);
    case "ListTasks": {
      const page = value as ListTasksResponse;
      return { ...page, tasks: page.tasks.map(deliveredTask) };
    }
    default:
      return value;
  }
}
