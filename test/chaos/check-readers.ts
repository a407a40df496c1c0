import { isTerminal } from "@parley/a2a/model";
import { eventOf } from "@parley/a2a/internal/model/index";
import type { Rule, TaskHistory } from "./check.ts";
import { foldOf, readOf } from "./fold.ts";
import { digest, type Read } from "./history.ts";

/* Rules about the answers and events that clients received. */

/**
 * A stream has the task at its start, and then every later event, once and in order, until the stream ends, over any number of connections. If a
 * stream could not be continued, it starts again with the task, and has every event after that.
 */
export const streamRule: Rule = (task) => {
  const streams = new Map<number, Read[]>();
  const closed = new Map<number, string>();
  for (const entry of task.entries) {
    if (entry.type === "read") streams.set(entry.stream, [...(streams.get(entry.stream) ?? []), entry]);
    if (entry.type === "closed") closed.set(entry.stream, entry.error ?? "");
  }
  return Array.from(streams, ([stream, reads]) => {
    const error = closed.get(stream);
    if (error === undefined) return `Stream ${stream} did not end`;
    if (error !== "") return `Stream ${stream} ended with an error: ${error}`;
    const problem = problemOf(reads, task);
    return problem === undefined ? [] : `Stream ${stream}: ${problem}`;
  }).flat();
};

function problemOf(reads: readonly Read[], { log }: TaskHistory): string | undefined {
  const records = log?.records ?? [];
  if (reads[0]?.whole !== true) return "it does not begin with the task";
  // A task in the middle of a stream replaces all earlier events.
  let at = 0;
  for (const read of reads) {
    const { seq, whole } = read;
    if (whole) {
      const place = seq ?? records.length;
      if (place < at) return `the task as of ${place} comes after record ${at}`;
      if (read.digest !== digest(readOf(records.slice(0, place)))) return `the task as of ${place} is another one`;
      at = place;
      continue;
    }
    if (seq === undefined) return "an event has no number";
    if (seq <= at) return `event ${seq} comes after ${at}`;
    const skipped = records.slice(at, seq - 1).filter(({ kind }) => kind !== "message");
    if (skipped.length > 0) return `event ${skipped[0]?.seq} is missing between ${at} and ${seq}`;
    const record = records[seq - 1];
    if (record === undefined) return `event ${seq} is not in the log`;
    if (read.digest !== digest(eventOf(record))) return `event ${seq} is another one than in the log`;
    at = seq;
  }
  const { state } = foldOf(records.slice(0, at)).task?.status ?? {};
  if (state === undefined) return "it has no end";
  if (isTerminal(state)) return at === records.length ? undefined : `it ends at ${at} of ${records.length}`;
  return state === "TASK_STATE_INPUT_REQUIRED" ? undefined : `it ends at ${at}, in ${state}`;
}

/** A waiting send, and a read of the ended task, returned the stored task. */
export const answerRule: Rule = ({ entries, log }) => {
  const wanted = digest(readOf(log?.records ?? []));
  return entries.flatMap((entry) =>
    entry.type === "answered" && entry.digest !== wanted
      ? ["An answer is another task than the one that is stored"]
      : [],
  );
};

/** A task is canceled once its cancel was acknowledged, and remains canceled. */
export const cancelRule: Rule = ({ entries, log }) => {
  const last = log?.records.findLast(({ state }) => state !== undefined)?.state;
  return entries.flatMap((entry) =>
    entry.type === "canceled" && entry.state !== last ? [`It was ${entry.state} for its caller, and is ${last}`] : [],
  );
};
