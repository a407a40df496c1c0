import type { PushEntry } from "@parley/server/internal/push/index";
import { line } from "@parley/a2a/internal/base/display";
import { table, type Style } from "./text.ts";

/** Webhooks as a table with one line each. Agents are named where there are others than `usual`. */
export function showWebhooks(entries: readonly PushEntry[], usual: string, style: Style): string {
  const others = entries.some(({ task }) => task.agent !== usual);
  const rows = entries.map((entry) => [
    ...(others ? [line(entry.task.agent)] : []),
    line(entry.task.taskId),
    line(entry.configId),
    entry.state,
    timeOf(entry.due),
    line(entry.url),
    line(entry.problem?.reason ?? ""),
  ]);
  const header = [...(others ? ["AGENT"] : []), "TASK", "WEBHOOK", "STATE", "TIME", "ADDRESS", "PROBLEM"];
  return table([header, ...rows], (cell, row, column) => {
    if (row === 0) return style("dim", cell);
    const entry = entries[row - 1];
    return entry !== undefined && header[column] === "STATE" ? paintState(entry, cell, style) : cell;
  });
}

/** A webhook with all that is known of it. */
export function showWebhook(entry: PushEntry, style: Style): string {
  const { state, problem, attempts } = entry;
  const rows: (readonly [string, string])[] = [
    ["webhook", line(entry.configId)],
    ["address", line(entry.url)],
    ["owner", line(entry.task.owner)],
    ["version", line(entry.version)],
    ["state", state],
    ...(entry.due === undefined ? [] : [[timeNames[state], timeOf(entry.due)] as const]),
    ["delivered", String(entry.delivered)],
    ...(attempts === 0 ? [] : [["attempts", String(attempts)] as const]),
    ...(problem === undefined ? [] : [["problem", `${line(problem.reason)} (${timeOf(problem.at)})`] as const]),
  ];
  const about = table(rows, (cell, row, column) =>
    column === 1 && rows[row]?.[0] === "state" ? paintState(entry, cell, style) : cell,
  );
  if (entry.refused.length === 0) return about;
  const refused = entry.refused.map(({ seq, at, reason }) => [`  ${seq}`, timeOf(at), line(reason)]);
  return (
    about +
    table([["  REFUSED", "TIME", "PROBLEM"], ...refused], (cell, row) => (row === 0 ? style("dim", cell) : cell))
  );
}

/** What `due` is, by the state. */
const timeNames = { idle: "time", due: "next", delivering: "until", parked: "since" } as const;

function timeOf(time: number | undefined): string {
  if (time === undefined) return "";
  const date = new Date(time);
  return Number.isNaN(date.getTime()) ? "" : date.toISOString();
}

function paintState({ state }: PushEntry, cell: string, style: Style): string {
  if (state === "parked") return style("red", cell);
  return state === "idle" ? style("green", cell) : style("yellow", cell);
}
