import {
  isInterrupted,
  isTerminal,
  type Artifact,
  type Message,
  type StreamResponse,
  type Task,
  type TaskStatus,
} from "@parley/a2a";
import type { Io } from "../io.ts";
import { showParts } from "./parts.ts";
import { endedBadly, stateName } from "./states.ts";
import { styleFor } from "./style.ts";
import { line } from "./text.ts";

/** Shows what happens to a task while it happens. */
export interface Progress {
  /** An event came, as it is. */
  received(event: StreamResponse): void;
  /** An event is to be shown. */
  show(event: StreamResponse): void;
  /** What this task has made so far counts as shown. */
  known(task: Task): void;
  /** Writes a line beside the agent's own output. */
  note(text: string): void;
}

/**
 * What the agent says for its caller (replies, questions, artifacts) goes to standard output; how the work goes (states,
 * progress, names of artifacts) goes to standard error, so that a pipe gets the content alone.
 */
export function terminalProgress(io: Io): Progress {
  const style = styleFor(io.stderr, io.env);
  /** What was shown of each artifact: a snapshot after a reconnect then shows only what is new. */
  const artifacts = new Map<string, string>();
  let taskId: string | undefined;
  let current: string | undefined;
  let lastStatus = "";
  /** Whether standard output stands in the middle of a line. */
  let open = false;

  function out(text: string): void {
    if (text === "") return;
    io.stdout.write(text);
    open = !text.endsWith("\n");
  }

  function closeLine(): void {
    if (open) out("\n");
  }

  function note(text: string): void {
    closeLine();
    io.stderr.write(`${text}\n`);
  }

  function say(message: Message): void {
    closeLine();
    out(showParts(message.parts));
    closeLine();
  }

  function status(value: TaskStatus): void {
    const key = `${value.state} ${value.message?.messageId ?? ""} ${value.timestamp ?? ""}`;
    if (key === lastStatus) return;
    lastStatus = key;
    current = undefined;
    const { state, message } = value;
    const name = stateName(state);
    if (endedBadly(state)) {
      const reason = message === undefined ? "" : `: ${showParts(message.parts).trim().replaceAll("\n", "\n  ")}`;
      note(`${style("red", `✗ ${name}`)}${reason}`);
    } else if (isTerminal(state) || isInterrupted(state)) {
      if (message !== undefined) say(message);
      note(isTerminal(state) ? style("green", `✓ ${name}`) : style("yellow", `? ${name}`));
    } else {
      const text = message === undefined ? "" : `  ${showParts(message.parts).trim().replaceAll("\n", "\n  ")}`;
      note(`${style("cyan", `● ${name}`)}${text}`);
    }
  }

  function artifact(value: Artifact, append: boolean): void {
    const id = value.artifactId;
    const before = artifacts.get(id) ?? "";
    let start = append ? before : "";
    let fresh = showParts(value.parts, start);
    if (!append && fresh.startsWith(before)) {
      start = before;
      fresh = fresh.slice(before.length);
    }
    artifacts.set(id, start + fresh);
    if (fresh === "") return;
    if (current !== id) {
      note(style("bold", `◆ ${line(value.name ?? id)}`));
      current = id;
    }
    out(fresh);
  }

  return {
    note,
    received() {},
    known(task) {
      for (const each of task.artifacts ?? []) artifacts.set(each.artifactId, showParts(each.parts));
    },
    show(event) {
      if (event.message !== undefined) return say(event.message);
      if (event.statusUpdate !== undefined) return status(event.statusUpdate.status);
      if (event.artifactUpdate !== undefined) {
        return artifact(event.artifactUpdate.artifact, event.artifactUpdate.append ?? false);
      }
      const { task } = event;
      if (taskId !== task.id) {
        taskId = task.id;
        const context = task.contextId === undefined ? "" : `, context ${line(task.contextId)}`;
        note(style("dim", `task ${line(task.id)}${context}`));
      }
      for (const each of task.artifacts ?? []) artifact(each, false);
      status(task.status);
    },
  };
}
