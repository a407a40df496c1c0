import { check, show, type Mismatch } from "./assert.ts";
import type { ExpectStream, Json } from "../acts/format.ts";
import { find, isMap, member } from "../acts/values.ts";

const members = ["task", "message", "statusUpdate", "artifactUpdate"];
const terminal = ["COMPLETED", "FAILED", "CANCELED", "REJECTED"].map((name) => `TASK_STATE_${name}`);

/** The content of a StreamResponse: the value of its only member. */
function inner(event: Json): Json {
  const name = members.find((one) => member(event, one) !== undefined);
  return name === undefined ? event : (member(event, name) as Json);
}

/** Checks an event. An assertion describes the StreamResponse, or the content of its only member. */
function checkEvent(assertion: Json, event: Json, path: string): Mismatch | undefined {
  const outer = check(assertion, event, path);
  if (outer === undefined) return undefined;
  const inside = check(assertion, inner(event), path);
  if (inside === undefined) return undefined;
  return isMap(assertion) && members.some((name) => Object.hasOwn(assertion, name)) ? outer : inside;
}

/** ACTS §7.1: no event follows a terminal state, and no state goes back to SUBMITTED. */
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
      return { path: `${path}.status.state`, expected: `no way back from ${last}`, actual: state };
    }
    last = state;
  }
  return undefined;
}

/** The updates of a stream as comparable texts, without the task at its beginning, which depends on when it was opened. */
function updatesOf(events: readonly Json[]): readonly string[] {
  return events
    .filter((event) => member(event, "statusUpdate") !== undefined || member(event, "artifactUpdate") !== undefined)
    .map((event) => JSON.stringify(sorted(event)));
}

function sorted(value: Json): Json {
  if (Array.isArray(value)) return (value as readonly Json[]).map(sorted);
  if (!isMap(value)) return value;
  const keys = Object.keys(value).sort();
  return Object.fromEntries(keys.map((key) => [key, sorted(value[key] as Json)]));
}

/** Checks `expect_stream` against the events of a stream. `raw` are the same events with the envelopes of the binding. */
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
      return { path: "event[*]", expected: description ?? `an event like ${show(assertion)}`, actual: show(events) };
    }
  }
  const last = events.at(-1);
  if (finalEvent !== undefined) {
    if (last === undefined) return { path: "", expected: "a last event", actual: counted };
    const wrong = checkEvent(finalEvent, last, `event[${events.length - 1}]`);
    if (wrong !== undefined) return wrong;
  }
  for (const [at, event] of events.entries()) {
    const wrong =
      (eachEvent === undefined ? undefined : checkEvent(eachEvent, event, `event[${at}]`)) ??
      (eachRaw === undefined ? undefined : check(eachRaw, raw[at], `event[${at}]`));
    if (wrong !== undefined) return wrong;
  }
  return other === undefined ? undefined : checkSame(events, other);
}

/**
 * Two streams of one task have the same updates in the same order. A stream that began later, which shows in another first event,
 * has the last of them.
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
