import type { Artifact, Message, StreamResponse, Task } from "@parley/a2a";
import { isInterrupted, isTerminal, type TaskStatus } from "@parley/a2a/model";
import type { Io } from "../io.ts";
import { endsMidLine, showParts } from "./parts.ts";
import { endedBadly, stateName } from "./states.ts";
import { styleFor } from "./text.ts";
import { line } from "@parley/conform/terminal";

/** Shows the events of a task as they arrive. */
export interface Progress {
  /** An event has arrived. */
  received(event: StreamResponse): void;
  /** Shows an event. */
  show(event: StreamResponse): void;
  /** Marks all artifacts of a task so far as shown. */
  known(task: Task): void;
  /** Ends the output. */
  end(): void;
  /** Writes a line to standard error. */
  note(text: string): void;
}

/** How much of an artifact was written. */
interface Shown {
  text: string;
  midLine: boolean;
}

/**
 * Progress for people. Content (replies, questions, artifacts) goes to standard output; states, progress messages and names of
 * artifacts go to standard error, so that a pipe receives the content alone.
 */
export function terminalProgress(io: Io): Progress {
  const style = styleFor(io.stderr, io.env);
  const brief = io.stdout.terminal;
  /** How much of each artifact was shown, so that a snapshot after a reconnect shows only what is new. */
  const artifacts = new Map<string, Shown>();
  let taskId: string | undefined;
  let current: string | undefined;
  let lastStatus = "";
  /** Whether standard output ends in the middle of a line. */
  let open = false;

  function out(text: string): void {
    io.stdout.write(text);
    open = endsMidLine(text, open);
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
    out(showParts(message.parts, { brief }));
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
      const reason =
        message === undefined ? "" : `: ${showParts(message.parts, { brief }).trim().replaceAll("\n", "\n  ")}`;
      note(`${style("red", `✗ ${name}`)}${reason}`);
    } else if (isTerminal(state) || isInterrupted(state)) {
      if (message !== undefined) say(message);
      note(isTerminal(state) ? style("green", `✓ ${name}`) : style("yellow", `? ${name}`));
    } else {
      const text =
        message === undefined ? "" : `  ${showParts(message.parts, { brief }).trim().replaceAll("\n", "\n  ")}`;
      note(`${style("cyan", `● ${name}`)}${text}`);
    }
  }

  function artifact(value: Artifact, append: boolean): void {
    const id = value.artifactId;
    let shown = artifacts.get(id);
    let fresh = showParts(value.parts, { brief, midLine: append && shown?.midLine === true });
    if (!append && shown !== undefined) {
      if (fresh.startsWith(shown.text)) fresh = fresh.slice(shown.text.length);
      else shown = undefined;
    }
    if (shown === undefined) artifacts.set(id, (shown = { text: "", midLine: false }));
    // Only appended to, so that the cost of a chunk does not grow with the artifact.
    shown.text += fresh;
    shown.midLine = endsMidLine(fresh, shown.midLine);
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
    end: closeLine,
    known(task) {
      for (const { artifactId, parts } of task.artifacts ?? []) {
        const text = showParts(parts, { brief });
        artifacts.set(artifactId, { text, midLine: endsMidLine(text, false) });
      }
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
