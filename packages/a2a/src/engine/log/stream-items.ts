import type { LogRecord, Message, StreamResponse } from "../../model/index.ts";
import { Payload, TextPayload, type StreamItem } from "../../protocol/index.ts";
import type { Snapshot } from "../../store/index.ts";

/** The task as it stood, as the first event of a stream (A2A 1.0 §3.1.6). */
export function snapshotItem(snapshot: Snapshot): StreamItem {
  const { head, pieces } = snapshot;
  const { seq, generation } = head;
  if (pieces !== undefined) return { payload: new TextPayload(['{"task":', ...pieces, "}"]), seq, generation };
  // Where its text is known, the task is not read: that would parse it.
  const json = snapshot.json ?? JSON.stringify(snapshot.task);
  return { payload: new TextPayload(`{"task":${json}}`), seq, generation };
}

/** A direct answer as the only event of a stream (§3.1.2). */
export function messageItem(message: Message): StreamItem {
  return { payload: new Payload({ message }) };
}

/** A stored record as an event. */
export function recordItem({ kind, seq, json }: LogRecord, generation: number | undefined): StreamItem {
  const payload = new TextPayload<StreamResponse>(`{"${kind}":${json}}`);
  return generation === undefined ? { payload, seq } : { payload, seq, generation };
}
