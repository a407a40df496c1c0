import type { StoredEvent } from "@parley/a2a/store";
import type { Value } from "./driver.ts";
import { kindNumber } from "./rows.ts";

/*
 * Many rows as one text: each value that comes out of `libsql` costs more than SQLite's work to find it. A page of 50 tasks
 * takes half of the time; row `list`. With `node:sqlite` it gains nothing and costs nothing. The characters that separate
 * the parts are none that JSON can hold.
 */

const [inEvent, between] = ["\u001d", "\u001c"];

/** SQL of an event for `storedEvent`. */
export const eventText = "kind || char(29) || json";

/** A statement that joins one text of each row of another one, in its order. */
export function joinOf(text: string, rows: string): string {
  return `SELECT group_concat(${text}, char(28)) FROM (${rows})`;
}

/** What was joined; nothing, where there were no rows. */
export function listOf(joined: Value | undefined): string[] {
  return typeof joined === "string" && joined !== "" ? joined.split(between) : [];
}

/** A record that holds history. */
export function storedEvent(joined: string): StoredEvent {
  const end = joined.indexOf(inEvent);
  return eventOf(Number(joined.slice(0, end)), joined.slice(end + 1));
}

export function eventOf(kind: number, json: string): StoredEvent {
  return {
    kind: kind === kindNumber("task") ? "task" : kind === kindNumber("message") ? "message" : "statusUpdate",
    json,
  };
}
