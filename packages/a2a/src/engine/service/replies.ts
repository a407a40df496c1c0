import { hasGenerations, type ListTasksResponse, type Task } from "../../model/index.ts";
import type { CallContext, Reply, UnaryOperations } from "../../protocol/index.ts";
import type { ListedTask, Snapshot } from "../../store/index.ts";

/* Answers made of text as the store has it: tasks are parsed only where their value is read. */

/**
 * An answer that goes out as text: parsing a task for nobody cost more than the rest of GetTask. Such an answer is added
 * to and never copied, since a copy would parse it.
 */
class TextReply<T> implements Reply<T> {
  readonly json?: string;
  readonly #value: () => T;

  constructor(json: string | undefined, value: () => T) {
    if (json !== undefined) this.json = json;
    this.#value = value;
  }

  get value(): T {
    return this.#value();
  }
}

/** A large answer: joined only for a binding that cannot write it in pieces. */
class PiecedReply<T> implements Reply<T> {
  readonly pieces: readonly string[];
  readonly #value: () => T;

  constructor(pieces: readonly string[], value: () => T) {
    this.pieces = pieces;
    this.#value = value;
  }

  get json(): string {
    return this.pieces.join("");
  }

  get value(): T {
    return this.#value();
  }
}

/** A reply with what the version of its call has beside (1.1 draft, §3.2.7). */
export function counted<T>(reply: Reply<T>, context: CallContext, generations: () => readonly number[]): Reply<T> {
  return hasGenerations(context.version) ? Object.assign(reply, { generations: generations() }) : reply;
}

/** A task, with its generation where the version has them. */
export function taskOf(snapshot: Snapshot, context: CallContext): Reply<Task> {
  const { pieces } = snapshot;
  const value = (): Task => snapshot.task;
  const reply = pieces === undefined ? new TextReply(snapshot.json, value) : new PiecedReply(pieces, value);
  return counted(reply, context, () => [snapshot.head.generation]);
}

/** A task as the answer to a send. */
export function wrapped(listed: ListedTask): Reply<UnaryOperations["SendMessage"]["response"]> {
  const { pieces } = listed;
  const value = (): { readonly task: Task } => ({ task: listed.task });
  if (pieces !== undefined) return new PiecedReply(['{"task":', ...pieces, "}"], value);
  const { json } = listed;
  return new TextReply(json && `{"task":${json}}`, value);
}

/** A page of a list, made of the texts of its tasks: they are parsed only if `value` is read. */
export function pageOf(
  snapshots: readonly ListedTask[],
  rest: Omit<ListTasksResponse, "tasks">,
): Reply<ListTasksResponse> {
  const value = (): ListTasksResponse => ({ tasks: snapshots.map(({ task }) => task), ...rest });
  const end = `],${JSON.stringify(rest).slice(1)}`;
  if (snapshots.some(({ pieces }) => pieces !== undefined)) {
    const tasks = snapshots.flatMap((snapshot, index) => [
      index === 0 ? '{"tasks":[' : ",",
      ...(snapshot.pieces ?? [snapshot.json ?? JSON.stringify(snapshot.task)]),
    ]);
    return new PiecedReply([...tasks, end], value);
  }
  const texts = snapshots.map((snapshot) => snapshot.json ?? JSON.stringify(snapshot.task));
  return new TextReply(`{"tasks":[${texts.join(",")}${end}`, value);
}
