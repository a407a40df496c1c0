import { A2AError, TaskFold, type Message, type StreamResponse, type Task } from "../model/index.ts";

/** A task as its events tell it: the reader's view of a stream. */
export class TaskView {
  #fold: TaskFold | undefined;
  #message: Message | undefined;

  /** Adds an event. A `task` event replaces what was known, as after a reconnection without replay. */
  apply(event: StreamResponse): void {
    if (event.message !== undefined) {
      this.#message = event.message;
    } else if (event.task !== undefined) {
      this.#fold = new TaskFold(event.task);
    } else {
      const update = event.statusUpdate ?? event.artifactUpdate;
      // Some servers leave the opening Task out.
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

  /** The task as it stands; `undefined` before the first event of one. */
  get task(): Task | undefined {
    return this.#fold?.snapshot();
  }

  /** The answer of an agent that made no task. */
  get message(): Message | undefined {
    return this.#message;
  }
}

/** Reads a stream to its end: the task as it stands by then, or the message that was the whole answer. */
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
