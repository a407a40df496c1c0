import type { Message, Task, TaskState } from "@parley/a2a/internal/model/index";
import { isInterrupted, isTerminal } from "@parley/a2a/model";
import { showParts, type Fold } from "./parts.ts";
import { endedBadly, stateName } from "./states.ts";
import { longest, table, type Style } from "./text.ts";
import { line } from "@parley/a2a/internal/base/display";
import { widthOf } from "./width.ts";

function showState(state: TaskState, style: Style): string {
  const text = stateName(state);
  if (endedBadly(state)) return style("red", text);
  if (isTerminal(state)) return style("green", text);
  return style(isInterrupted(state) ? "yellow" : "cyan", text);
}

function indented(text: string): string {
  return text
    .trimEnd()
    .split("\n")
    .map((each) => `  ${each}\n`)
    .join("");
}

function showMessage(message: Message, style: Style, fold: Fold): string {
  const who = message.role === "ROLE_USER" ? "user" : "agent";
  return `${style("dim", `${who}:`)}\n${indented(showParts(message.parts, { fold, indent: 2 }))}`;
}

/** A task as text: state, messages, artifacts. */
export function showTask(task: Task, style: Style, fold: Fold): string {
  const { status } = task;
  const rows: (readonly [string, string])[] = [
    ["task", line(task.id)],
    ...(task.contextId === undefined ? [] : [["context", line(task.contextId)] as const]),
    ["state", stateName(status.state)],
    ...(status.timestamp === undefined ? [] : [["since", line(status.timestamp)] as const]),
  ];
  const history = task.history ?? [];
  const said = history.some((message) => message.messageId === status.message?.messageId);
  return [
    table(rows, (cell, row, column) =>
      column === 1 && rows[row]?.[0] === "state" ? showState(status.state, style) : cell,
    ),
    ...history.map((message) => `\n${showMessage(message, style, fold)}`),
    ...(status.message === undefined || said ? [] : [`\n${showMessage(status.message, style, fold)}`]),
    ...(task.artifacts ?? []).map(
      (artifact) =>
        `\n${style("bold", `◆ ${line(artifact.name ?? artifact.artifactId, longest.name)}`)}\n${indented(showParts(artifact.parts, { fold, indent: 2 }))}`,
    ),
  ].join("");
}

/** Tasks as a table with one line each. Contexts are left out where they would not fit into the columns of a terminal. */
export function showTasks(tasks: readonly Task[], style: Style, columns: number = Infinity): string {
  const rows = tasks.map(({ id, contextId, status }) => [
    line(id),
    stateName(status.state),
    line(status.timestamp ?? ""),
    line(contextId ?? ""),
  ]);
  const all = [["TASK", "STATE", "SINCE", "CONTEXT"], ...rows];
  const fits = table(all)
    .split("\n")
    .every((text) => widthOf(text) <= columns);
  return table(fits ? all : all.map((row) => row.slice(0, -1)), (cell, row, column) => {
    if (row === 0) return style("dim", cell);
    const state = tasks[row - 1]?.status.state;
    return column === 1 && state !== undefined ? showState(state, style) : cell;
  });
}
