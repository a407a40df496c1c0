import { hasGenerations, type ListTasksResponse, type Task } from "../../model/index.ts";
import { Payload, TextPayload, type CallContext, type Reply, type UnaryOperations } from "../../protocol/index.ts";
import type { ListedTask, Snapshot } from "../../store/index.ts";

/* Answers made of text as the store has it: tasks are parsed only where their value is read. */

/** A reply with the generations of its tasks, by their ids, where the version of the call has them (1.1 draft, §3.2.7). */
export function counted<T>(
  reply: Reply<T>,
  context: CallContext,
  generations: () => ReadonlyMap<string, number>,
): Reply<T> {
  return hasGenerations(context.version) ? { generations: generations(), ...reply } : reply;
}

/** A task, with its generation where the version has them. */
export function taskOf(snapshot: Snapshot, context: CallContext): Reply<Task> {
  const { head, pieces, json } = snapshot;
  const text = pieces ?? json;
  const payload = text === undefined ? new Payload(snapshot.task) : new TextPayload<Task>(text);
  return counted({ payload }, context, () => new Map([[head.task.taskId, head.generation]]));
}

/** A task as the answer to a send. */
export function wrapped(listed: ListedTask): Reply<UnaryOperations["SendMessage"]["response"]> {
  const { pieces, json } = listed;
  if (pieces !== undefined) return { payload: new TextPayload(['{"task":', ...pieces, "}"]) };
  return { payload: json === undefined ? new Payload({ task: listed.task }) : new TextPayload(`{"task":${json}}`) };
}

/** A page of a list, made of the texts of its tasks. */
export function pageOf(
  snapshots: readonly ListedTask[],
  rest: Omit<ListTasksResponse, "tasks">,
): Reply<ListTasksResponse> {
  const end = `],${JSON.stringify(rest).slice(1)}`;
  if (snapshots.some(({ pieces }) => pieces !== undefined)) {
    const tasks = snapshots.flatMap((snapshot, index) => [
      index === 0 ? '{"tasks":[' : ",",
      ...(snapshot.pieces ?? [snapshot.json ?? JSON.stringify(snapshot.task)]),
    ]);
    return { payload: new TextPayload([...tasks, end]) };
  }
  const texts = snapshots.map((snapshot) => snapshot.json ?? JSON.stringify(snapshot.task));
  return { payload: new TextPayload(`{"tasks":[${texts.join(",")}${end}`) };
}
