import { A2AError, TaskFold, type Message, type StreamResponse, type Task } from "../model/index.ts";

/**
 * The task that the events of a stream describe, at any moment of the stream.
 *
 * @example
 * ```ts
 * const view = new TaskView();
 * for await (const event of client.subscribeToTask(taskId)) {
 *   view.apply(event);
 *   console.log(view.task?.artifacts?.length ?? 0);
 * }
 * ```
 */
export class TaskView {
  #fold: TaskFold | undefined;
  #message: Message | undefined;

  /** Adds an event. A `task` event replaces everything before it: it comes after a reconnection. */
  apply(event: StreamResponse): void {
    if (event.message !== undefined) {
      this.#message = event.message;
    } else if (event.task !== undefined) {
      this.#fold = new TaskFold(event.task);
    } else {
      const update = event.statusUpdate ?? event.artifactUpdate;
      // Some servers leave out the task at the beginning of a stream.
      this.#fold ??= new TaskFold({
        id: update.taskId,
        contextId: update.contextId,
        status: { state: "TASK_STATE_SUBMITTED" },
      });
      const problem = this.#fold.apply(event);
      if (problem === "unknownArtifact" && event.artifactUpdate !== undefined) {
        const { append: _, ...first } = event.artifactUpdate;
        this.#fold.apply({ artifactUpdate: first });
      }
    }
  }

  /** The task after the events so far; `undefined` before the first event of a task. */
  get task(): Task | undefined {
    return this.#fold?.snapshot();
  }

  /** The direct message of an agent that made no task. */
  get message(): Message | undefined {
    return this.#message;
  }
}

/**
 * Reads a stream to its end and returns the task, or the message of an agent that made no task.
 *
 * @throws A2AError `InvalidResponse` where the stream has no event, and whatever the stream throws.
 *
 * @example
 * ```ts
 * const { task, message } = await collect(client.sendStreamingMessage("Will it rain?"));
 * ```
 */
export async function collect(
  stream: AsyncIterable<StreamResponse>,
): Promise<{ readonly task: Task; readonly message?: never } | { readonly message: Message; readonly task?: never }> {
  const view = new TaskView();
  for await (const event of stream) view.apply(event);
  const { task, message } = view;
  if (task !== undefined) return { task };
  if (message !== undefined) return { message };
  throw new A2AError("InvalidResponse", "The stream ended without an event");
}
