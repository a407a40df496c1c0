import { wrapped } from "../../base/json-text.ts";
import type { LogRecord, Message, StreamResponse } from "../../model/index.ts";
import { Payload, TextPayload, type StreamItem } from "../../protocol/index.ts";
import { taskJson, type Snapshot } from "../../store/index.ts";

/** The task as it stood, as the first event of a stream (A2A 1.0 §3.1.6). */
export function snapshotItem(snapshot: Snapshot): StreamItem {
  const { seq, generation } = snapshot.head;
  return { payload: new TextPayload(wrapped("task", taskJson(snapshot))), seq, generation };
}

/** A direct answer as the only event of a stream (§3.1.2). */
export function messageItem(message: Message): StreamItem {
  return { payload: new Payload({ message }) };
}

/** A stored record as an event. */
export function recordItem({ kind, seq, json }: LogRecord, generation: number | undefined): StreamItem {
  const payload = new TextPayload<StreamResponse>(wrapped(kind, json));
  return generation === undefined ? { payload, seq } : { payload, seq, generation };
}
