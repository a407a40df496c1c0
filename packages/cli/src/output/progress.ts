import type { Artifact, Message, StreamResponse, Task } from "@parley/a2a";
import { isInterrupted, isTerminal, type TaskStatus } from "@parley/a2a/model";
import type { Io } from "../io.ts";
import { endsMidLine, showParts } from "./parts.ts";
import { endedBadly, stateName } from "./states.ts";
import { longest, styleFor, type Style } from "./text.ts";
import { line } from "@parley/a2a/display";

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
  return new TerminalProgress(io);
}

class TerminalProgress implements Progress {
  readonly #io: Io;
  readonly #style: Style;
  readonly #brief: boolean;
  /** How much of each artifact was shown, so that a snapshot after a reconnect shows only what is new. */
  readonly #artifacts = new Map<string, Shown>();
  #taskId: string | undefined;
  /** The artifact whose text was written last. */
  #current: string | undefined;
  #lastStatus = "";
  /** Whether standard output ends in the middle of a line. */
  #midLine = false;

  constructor(io: Io) {
    this.#io = io;
    this.#style = styleFor(io.stderr, io.env);
    this.#brief = io.stdout.terminal;
  }

  received(): void {}

  end(): void {
    if (this.#midLine) this.#out("\n");
  }

  note(text: string): void {
    this.end();
    this.#io.stderr.write(`${text}\n`);
  }

  known(task: Task): void {
    for (const { artifactId, parts } of task.artifacts ?? []) {
      const text = showParts(parts, { brief: this.#brief });
      this.#artifacts.set(artifactId, { text, midLine: endsMidLine(text, false) });
    }
  }

  show(event: StreamResponse): void {
    if (event.message !== undefined) this.#say(event.message);
    else if (event.statusUpdate !== undefined) this.#status(event.statusUpdate.status);
    else if (event.artifactUpdate !== undefined) {
      this.#artifact(event.artifactUpdate.artifact, event.artifactUpdate.append ?? false);
    } else this.#task(event.task);
  }

  #task(task: Task): void {
    if (this.#taskId !== task.id) {
      this.#taskId = task.id;
      const context = task.contextId === undefined ? "" : `, context ${line(task.contextId)}`;
      this.note(this.#style("dim", `task ${line(task.id)}${context}`));
    }
    for (const artifact of task.artifacts ?? []) this.#artifact(artifact, false);
    this.#status(task.status);
  }

  #status(status: TaskStatus): void {
    const { state, message, timestamp = "" } = status;
    const key = `${state} ${message?.messageId ?? ""} ${timestamp}`;
    if (key === this.#lastStatus) return;
    this.#lastStatus = key;
    this.#current = undefined;
    const name = stateName(state);
    const style = this.#style;
    if (endedBadly(state)) {
      this.note(`${style("red", `✗ ${name}`)}${message === undefined ? "" : `: ${this.#indented(message)}`}`);
    } else if (isTerminal(state) || isInterrupted(state)) {
      if (message !== undefined) this.#say(message);
      this.note(isTerminal(state) ? style("green", `✓ ${name}`) : style("yellow", `? ${name}`));
    } else {
      this.note(`${style("cyan", `● ${name}`)}${message === undefined ? "" : `  ${this.#indented(message)}`}`);
    }
  }

  #artifact(artifact: Artifact, append: boolean): void {
    const id = artifact.artifactId;
    let shown = this.#artifacts.get(id);
    let fresh = showParts(artifact.parts, { brief: this.#brief, midLine: append && shown?.midLine === true });
    if (!append && shown !== undefined) {
      if (fresh.startsWith(shown.text)) fresh = fresh.slice(shown.text.length);
      else shown = undefined;
    }
    if (shown === undefined) this.#artifacts.set(id, (shown = { text: "", midLine: false }));
    // Only appended to, so that the cost of a chunk does not grow with the artifact.
    shown.text += fresh;
    shown.midLine = endsMidLine(fresh, shown.midLine);
    if (fresh === "") return;
    if (this.#current !== id) {
      this.note(this.#style("bold", `◆ ${line(artifact.name ?? id, longest.name)}`));
      this.#current = id;
    }
    this.#out(fresh);
  }

  /** Writes a message to standard output, on lines of its own. */
  #say(message: Message): void {
    this.end();
    this.#out(showParts(message.parts, { brief: this.#brief }));
    this.end();
  }

  #indented(message: Message): string {
    return showParts(message.parts, { brief: this.#brief }).trim().replaceAll("\n", "\n  ");
  }

  #out(text: string): void {
    this.#io.stdout.write(text);
    this.#midLine = endsMidLine(text, this.#midLine);
  }
}
