import { wrapped } from "../../base/json-text.ts";
import { hasGenerations, type ListTasksResponse, type Task } from "../../model/index.ts";
import { TextPayload, type CallContext, type Reply, type UnaryOperations } from "../../protocol/index.ts";
import { taskJson, type ListedTask, type Snapshot } from "../../store/index.ts";

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
  const { head } = snapshot;
  const payload = new TextPayload<Task>(taskJson(snapshot));
  return counted({ payload }, context, () => new Map([[head.task.taskId, head.generation]]));
}

/** A task as the answer to a send. */
export function wrappedTask(task: ListedTask): Reply<UnaryOperations["SendMessage"]["response"]> {
  return { payload: new TextPayload(wrapped("task", taskJson(task))) };
}

/** A page of a list, made of the texts of its tasks. */
export function pageOf(tasks: readonly ListedTask[], rest: Omit<ListTasksResponse, "tasks">): Reply<ListTasksResponse> {
  const texts = tasks.map(taskJson);
  const end = `],${JSON.stringify(rest).slice(1)}`;
  if (texts.every((text) => typeof text === "string")) {
    return { payload: new TextPayload(`{"tasks":[${texts.join(",")}${end}`) };
  }
  const pieces = texts.flatMap((text, index) => [
    index === 0 ? '{"tasks":[' : ",",
    ...(typeof text === "string" ? [text] : text),
  ]);
  return { payload: new TextPayload([...pieces, end]) };
}
