import { A2AError, stateKinds, type TaskState } from "../../model/index.ts";
import { closesAfter, stateOf, type StreamItem, type StreamName } from "../../protocol/index.ts";

/**
 * The events of a stream, until the protocol says that it is over. Throws `ConnectionLost` where it ends sooner.
 *
 * @param source - What arrived, one batch at a time.
 * @param itemOf - Reads one event; what came before one that cannot be read is delivered first.
 * @param ends - Whether the event that was read last says by itself that nothing follows. Otherwise its state tells.
 * @param retryAfter - When a reader whose stream broke may come back, in seconds.
 */
export async function* untilOver<Raw>(
  source: AsyncIterable<readonly Raw[]>,
  operation: StreamName,
  itemOf: (raw: Raw) => StreamItem,
  ends?: () => boolean | undefined,
  retryAfter?: () => number | undefined,
): AsyncGenerator<readonly StreamItem[], void, void> {
  let state: TaskState | undefined;
  let first = true;
  for await (const raws of source) {
    const batch: StreamItem[] = [];
    let over = false;
    let broken: { readonly error: unknown } | undefined;
    for (const raw of raws) {
      let item: StreamItem;
      try {
        item = itemOf(raw);
      } catch (thrown) {
        broken = { error: thrown };
        break;
      }
      batch.push(item);
      const event = item.payload.value;
      state = stateOf(event) ?? state;
      // Some servers open a send to an interrupted task with the task as it was: more follows.
      const opening = first && event.task !== undefined && state !== undefined && stateKinds[state] === "interrupted";
      first = false;
      over = ends?.() || (!opening && closesAfter(event, operation));
      if (over) break;
    }
    if (batch.length > 0) yield batch;
    if (broken !== undefined) throw broken.error;
    if (over) return;
  }
  // Interrupted tasks end some servers' streams (§11.7); in any other state more was to come.
  if (state === undefined || stateKinds[state] === "active") {
    throw new A2AError("ConnectionLost", "The stream ended before its task did", { retryAfter: retryAfter?.() });
  }
}
