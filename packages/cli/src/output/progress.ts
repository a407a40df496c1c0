import type { Artifact, Message, StreamResponse, Task } from "@parley/a2a/internal/model/index";
import { isInterrupted, isTerminal, type TaskStatus } from "@parley/a2a/model";
import { GrowingText, type TextPiece } from "@parley/a2a/internal/client/index";
import type { Io } from "../io.ts";
import { endsMidLine, fileLabel, foldFor, showGrowing, showParts, type Fold, type GrowingFile } from "./parts.ts";
import { byteSize, endedBadly, maxLength, stateName, type Style, styleFor } from "./text.ts";
import { line } from "@parley/a2a/internal/base/display";

/** Shows the events of a task as they arrive. */
export interface Progress {
  /** Handles an event. */
  received(event: StreamResponse): void;
  show(event: StreamResponse): void;
  /** Marks the artifacts of a task as shown. */
  known(task: Task): void;
  /** Whether files were shown only by name. */
  readonly hasFiles: boolean;
  /** Ends the output. */
  end(): void;
  /** Writes a line to standard error. */
  note(text: string): void;
}

/** The part of an artifact that was written. */
interface Shown {
  readonly text: GrowingText;
  midLine: boolean;
  /** A file that may continue. It is shown once complete. */
  file?: GrowingFile | undefined;
  /** Name of the artifact, which only its first chunk has. */
  name?: string | undefined;
}

type Piece = Omit<TextPiece, "artifactId"> | undefined;

/**
 * Progress for people. Content (replies, questions, artifacts) goes to standard output, everything else to standard error, so that a
 * pipe receives only the content.
 */
export class TerminalProgress implements Progress {
  readonly #io: Io;
  readonly #style: Style;
  readonly #fold: Fold;
  /** What was shown of each artifact, so that a snapshot after a reconnect adds only the rest. */
  readonly #artifacts = new Map<string, Shown>();
  #taskId: string | undefined;
  /** The artifact that was written last. */
  #current: string | undefined;
  #lastStatus = "";
  /** Whether standard output ends in the middle of a line. */
  #midLine = false;
  hasFiles = false;
  /** The line of a growing file, and when it was written. */
  #bar = "";
  #barAt = 0;

  constructor(io: Io, full: boolean) {
    this.#io = io;
    this.#style = styleFor(io.stderr, io.env);
    this.#fold = foldFor(io.stdout, full);
  }

  received(): void {}

  end(): void {
    this.#fileBar("");
    if (this.#midLine) this.#out("\n");
  }

  note(text: string): void {
    this.end();
    this.#io.stderr.write(`${text}\n`);
  }

  known(task: Task): void {
    for (const { artifactId, parts } of task.artifacts ?? []) {
      const { text, file } = showGrowing(parts, { fold: this.#fold });
      const shown = { text: new GrowingText(), midLine: endsMidLine(text, false), file };
      shown.text.add(text, false);
      this.#artifacts.set(artifactId, shown);
    }
  }

  show(event: StreamResponse): void {
    if (event.message !== undefined) this.#say(event.message);
    else if (event.statusUpdate !== undefined) this.#status(event.statusUpdate.status);
    else if (event.artifactUpdate !== undefined) {
      const { artifact, append = false, lastChunk = false } = event.artifactUpdate;
      this.#artifact(artifact, append);
      if (lastChunk) this.#complete(artifact.artifactId);
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
    if (isTerminal(state) || isInterrupted(state)) for (const id of this.#artifacts.keys()) this.#complete(id);
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
    const midLine = append && shown?.midLine === true;
    const grown = showGrowing(artifact.parts, { fold: this.#fold, midLine }, append ? shown?.file : undefined);
    const { text, file } = grown;
    const before = shown?.text.shown ?? "";
    if (!append && before !== "" && showParts(artifact.parts, { fold: this.#fold }) === before) {
      shown?.text.add(before, false);
      return;
    }
    if (shown === undefined) this.#artifacts.set(id, (shown = { text: new GrowingText(), midLine: false }));
    const piece = shown.text.add(text, append);
    shown.midLine = endsMidLine(text, midLine);
    shown.file = file;
    if (piece === undefined && file === undefined) return;
    this.#name(artifact.name, id);
    this.#piece(piece, shown.name ?? id);
    this.hasFiles ||= file !== undefined || artifact.parts.some(({ raw }) => raw !== undefined);
    if (file !== undefined) this.#fileBar(`  ${line(file.part.filename ?? "file", 60)}  ${byteSize(file.bytes)}`);
  }

  /** Shows the last file of a complete artifact. */
  #complete(id: string): void {
    const shown = this.#artifacts.get(id);
    if (shown === undefined) return;
    const pieces: Piece[] = [];
    if (shown.file !== undefined) {
      pieces.push(shown.text.add(`${shown.midLine ? "\n" : ""}${fileLabel(shown.file)}\n`, true));
      shown.file = undefined;
      shown.midLine = false;
      this.hasFiles = true;
    }
    pieces.push(shown.text.end());
    for (const piece of pieces) {
      if (piece === undefined) continue;
      this.#name(undefined, id);
      this.#fileBar("");
      this.#piece(piece, shown.name ?? id);
    }
  }

  /** Writes the new part of an artifact. If the agent replaced earlier text, notes it and writes the artifact again. */
  #piece(piece: Piece, name: string): void {
    if (piece?.reset === true)
      this.note(this.#style("yellow", `↻ ${line(name, maxLength.name)} was replaced; starting over`));
    if (piece !== undefined && piece.text !== "") this.#out(piece.text);
  }

  /** Writes the name of an artifact, unless it is the current one. */
  #name(name: string | undefined, id: string): void {
    const shown = this.#artifacts.get(id);
    if (shown !== undefined) name = shown.name ??= name;
    if (this.#current === id) return;
    this.note(this.#style("bold", `◆ ${line(name ?? id, maxLength.name)}`));
    this.#current = id;
  }

  /** Shows the size of a growing file, on one line of a terminal. */
  #fileBar(text: string): void {
    if (text === this.#bar || !this.#io.stderr.terminal) return;
    // Limits redraws: a file can have thousands of chunks.
    const now = performance.now();
    if (text !== "" && this.#bar !== "" && now - this.#barAt < 100) return;
    this.#barAt = now;
    if (this.#midLine && this.#bar === "") this.#out("\n");
    this.#bar = text;
    this.#io.stderr.write(`\r\u001b[K${this.#style("dim", text)}`);
  }

  /** Writes a message to standard output, on its own lines. */
  #say(message: Message): void {
    this.end();
    this.#out(showParts(message.parts, { fold: this.#fold }));
    this.end();
  }

  #indented(message: Message): string {
    return showParts(message.parts, { fold: this.#fold }).trim().replaceAll("\n", "\n  ");
  }

  #out(text: string): void {
    this.#fileBar("");
    this.#io.stdout.write(text);
    this.#midLine = endsMidLine(text, this.#midLine);
  }
}
