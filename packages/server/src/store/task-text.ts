import type { JsonText } from "@parley/a2a/internal/base/json-text";
import { deepFreeze } from "@parley/a2a/internal/base/index";
import type { Task } from "@parley/a2a/internal/model/index";
import type { TaskHead } from "./append.ts";
import type { ListedTask, Snapshot } from "./queries.ts";
import { storedJson } from "@parley/a2a/internal/base/json";

/** A JSON text in fragments that are not joined. */
export type Fragments = readonly string[];

/** A text of more characters is returned in pieces. */
const large = 1 << 20;
/** Short fragments are joined to pieces of about this length, because each piece is a write to a socket. */
const pieceLength = 1 << 16;

/** A task whose JSON text is known. `task` is parsed when it is first read, and frozen. */
export interface TaskText extends ListedTask {
  /** The task as JSON text. */
  readonly json: string;
}

/** A snapshot whose JSON text is known. */
export interface SnapshotText extends Snapshot {
  /** The task as JSON text. */
  readonly json: string;
}

/** A snapshot of a JSON text. */
export function snapshotOf(head: TaskHead, json: string): SnapshotText {
  return new TextSnapshot(head, json);
}

/** A snapshot of a JSON text in fragments, which are joined only if the text is small. */
export function snapshotFrom(head: TaskHead, fragments: Fragments): SnapshotText {
  if (!isLarge(fragments)) return new TextSnapshot(head, fragments.join(""));
  return new PiecedSnapshot(head, piecesOf(fragments));
}

/** A task from fragments of its JSON text, which are joined only if the text is small. */
export function taskFrom(fragments: Fragments): TaskText {
  return isLarge(fragments) ? new PiecedTask(piecesOf(fragments)) : new TextTask(fragments.join(""));
}

/** The text of a task, in pieces if it is large. Reads `task` only if the text is unknown, because reading it may parse JSON. */
export function taskJson(listed: ListedTask): JsonText {
  return listed.pieces ?? listed.json ?? JSON.stringify(listed.task);
}

class TextTask implements TaskText {
  readonly json: string;
  #task: Task | undefined;

  constructor(json: string) {
    this.json = json;
  }

  get task(): Task {
    this.#task ??= parse(this.json);
    return this.#task;
  }
}

class TextSnapshot extends TextTask implements SnapshotText {
  readonly head: TaskHead;

  constructor(head: TaskHead, json: string) {
    super(json);
    this.head = head;
  }
}

/** A large task. The joined text is not cached, because it would need the same memory again. */
class PiecedTask implements TaskText {
  readonly pieces: readonly string[];
  #task: Task | undefined;

  constructor(pieces: readonly string[]) {
    this.pieces = pieces;
  }

  get json(): string {
    return this.pieces.join("");
  }

  get task(): Task {
    this.#task ??= parse(this.json);
    return this.#task;
  }
}

class PiecedSnapshot extends PiecedTask implements SnapshotText {
  readonly head: TaskHead;

  constructor(head: TaskHead, pieces: readonly string[]) {
    super(pieces);
    this.head = head;
  }
}

function isLarge(fragments: Fragments): boolean {
  let length = 0;
  for (const fragment of fragments) length += fragment.length;
  return length > large;
}

function piecesOf(fragments: Fragments): readonly string[] {
  const pieces: string[] = [];
  let short: string[] = [];
  let length = 0;
  const end = (): void => {
    if (short.length > 0) pieces.push(short.join(""));
    short = [];
    length = 0;
  };
  for (const fragment of fragments) {
    if (fragment.length >= pieceLength) {
      end();
      pieces.push(fragment);
      continue;
    }
    short.push(fragment);
    length += fragment.length;
    if (length >= pieceLength) end();
  }
  end();
  return Object.freeze(pieces);
}

const wholeTaskJson = storedJson<Task>();

function parse(json: string): Task {
  return deepFreeze(wholeTaskJson.read(json));
}
