import { check, show, type Mismatch } from "./assert.ts";
import type { ExpectStream, Json } from "../acts/format.ts";
import { find, firstOf, isList, isMap, member } from "../acts/values.ts";

const members = ["task", "message", "statusUpdate", "artifactUpdate"];
const terminal = ["COMPLETED", "FAILED", "CANCELED", "REJECTED"].map((name) => `TASK_STATE_${name}`);

/** The content of a StreamResponse: the value of its single member. */
function inner(event: Json): Json {
  return members.map((name) => member(event, name)).find((value) => value !== undefined) ?? event;
}

/** Checks an event. The assertion describes the StreamResponse or the content of its single member. */
function checkEvent(assertion: Json | undefined, event: Json, path: string): Mismatch | undefined {
  const outer = assertion === undefined ? undefined : check(assertion, event, path);
  if (assertion === undefined || outer === undefined) return undefined;
  const inside = check(assertion, inner(event), path);
  if (inside === undefined) return undefined;
  return isMap(assertion) && members.some((name) => Object.hasOwn(assertion, name)) ? outer : inside;
}

/** ACTS §7.1: no event follows a terminal state, and no task returns to SUBMITTED. */
function checkOrder(events: readonly Json[]): Mismatch | undefined {
  let last: string | undefined;
  for (const [at, event] of events.entries()) {
    const state = find(inner(event), "status.state");
    const path = `event[${at}]`;
    if (last !== undefined && terminal.includes(last)) {
      return { path, expected: `no event after ${last}`, actual: show(event) };
    }
    if (typeof state !== "string") continue;
    if (last !== undefined && last !== state && state === "TASK_STATE_SUBMITTED") {
      return { path: `${path}.status.state`, expected: `no return from ${last} to SUBMITTED`, actual: state };
    }
    last = state;
  }
  return undefined;
}

/** The updates of a stream as comparable strings, without the initial task, which depends on the time of the subscription. */
function updatesOf(events: readonly Json[]): readonly string[] {
  return events
    .filter((event) => member(event, "statusUpdate") !== undefined || member(event, "artifactUpdate") !== undefined)
    .map((event) => JSON.stringify(sorted(event)));
}

function sorted(value: Json): Json {
  if (isList(value)) return value.map(sorted);
  if (!isMap(value)) return value;
  const members = Object.entries(value).map(([key, one]) => [key, sorted(one)] as const);
  return Object.fromEntries(members.sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** Checks the events of a stream against `expect_stream`. `raw`: the events with the envelopes of the binding. */
export function checkStream(
  expected: ExpectStream,
  events: readonly Json[],
  raw: readonly Json[],
  headers: Readonly<Record<string, string>>,
  other: readonly Json[] | undefined,
): Mismatch | undefined {
  const { minCount, maxCount, finalEvent, eachEvent, eachRaw } = expected;
  const counted = `${events.length} events`;
  if (expected.headers !== undefined) {
    const wrong = check(expected.headers, headers, "headers");
    if (wrong !== undefined) return wrong;
  }
  if (minCount !== undefined && events.length < minCount) {
    return { path: "", expected: `at least ${minCount} events`, actual: counted };
  }
  if (maxCount !== undefined && events.length > maxCount) {
    return { path: "", expected: `at most ${maxCount} events`, actual: counted };
  }
  const wrongOrder = expected.monotonic ? checkOrder(events) : undefined;
  if (wrongOrder !== undefined) return wrongOrder;
  for (const { assertion, anywhere, index, description } of expected.events) {
    if (!anywhere) {
      const event = events[index];
      if (event === undefined) return { path: `event[${index}]`, expected: show(assertion), actual: counted };
      const wrong = checkEvent(assertion, event, `event[${index}]`);
      if (wrong !== undefined) return wrong;
    } else if (!events.some((event) => checkEvent(assertion, event, "") === undefined)) {
      return {
        path: "event[*]",
        expected: description ?? `an event that matches ${show(assertion)}`,
        actual: show(events),
      };
    }
  }
  const last = events.at(-1);
  if (finalEvent !== undefined) {
    if (last === undefined) return { path: "", expected: "a last event", actual: counted };
    const wrong = checkEvent(finalEvent, last, `event[${events.length - 1}]`);
    if (wrong !== undefined) return wrong;
  }
  const wrongEvent = firstOf(
    events,
    (event, at) =>
      checkEvent(eachEvent, event, `event[${at}]`) ??
      (eachRaw === undefined ? undefined : check(eachRaw, raw[at], `event[${at}]`)),
  );
  return wrongEvent ?? (other === undefined ? undefined : checkSame(events, other));
}

/**
 * Checks that two streams of one task have the same updates in the same order. If their first events differ, the stream that started
 * later has only the last updates.
 */
function checkSame(events: readonly Json[], other: readonly Json[]): Mismatch | undefined {
  let [here, there] = [updatesOf(events), updatesOf(other)];
  const snapshot = (list: readonly Json[]): string => JSON.stringify(sorted(list[0] ?? null));
  if (snapshot(events) !== snapshot(other)) {
    const shorter = Math.min(here.length, there.length);
    [here, there] = [here.slice(here.length - shorter), there.slice(there.length - shorter)];
  }
  const at = here.findIndex((event, index) => event !== there[index]);
  if (at === -1 && here.length === there.length) return undefined;
  const place = at === -1 ? here.length : at;
  return {
    path: `update[${place}]`,
    expected: there[place] ?? "no further update",
    actual: here[place] ?? "no further update",
  };
}
