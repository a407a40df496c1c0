import { A2AError, hasGenerations, isTerminal } from "../../model/index.ts";
import type { CallContext } from "../../protocol/index.ts";
import type { TaskHead } from "../../store/index.ts";
import { EventStream, generationAt, snapshotItem, type StreamFrom } from "../log/index.ts";
import type { AgentTasks } from "./agent-tasks.ts";
import type { StreamHandlers } from "./operations.ts";

/** SubscribeToTask (A2A 1.0 §3.1.6). */
export function subscribeToTask(tasks: AgentTasks): StreamHandlers["SubscribeToTask"] {
  return async ({ id }, context) => {
    const { task, contextId, state } = await tasks.head(id, context);
    const { after } = context;
    if (isTerminal(state) && after === undefined) {
      throw new A2AError("UnsupportedOperation", "This task is over: read it with GetTask", {
        metadata: { taskId: id, state },
      });
    }
    const wanted: WantedStream = { after, input: 0, historyLength: undefined };
    return new EventStream("SubscribeToTask", () => streamFrom(tasks, { task, contextId }, wanted, context));
  };
}

/** What a reader wants of the stream of a task. */
interface WantedStream {
  /** The `seq` that the reader saw last; `undefined`: the stream begins with the task as it stands. */
  readonly after: number | undefined;
  /** For the stream of a send: `seq` of its message. */
  readonly input: number;
  readonly historyLength: number | undefined;
}

/**
 * Where the stream of a task begins for a reader; `undefined` when there is nothing left to come. Without a cursor, or with
 * one that is above the head of the log or below what is kept of it, it begins anew with the Task (§3.1.6).
 */
export async function streamFrom(
  tasks: AgentTasks,
  of: Pick<TaskHead, "task" | "contextId">,
  { after, input, historyLength }: WantedStream,
  context: CallContext,
): Promise<StreamFrom | undefined> {
  const counts = hasGenerations(context.version);
  const head = after === undefined ? undefined : await tasks.settings.store.head(of.task, of.task.taskId);
  if (after !== undefined && head !== undefined && after <= head.seq && after + 1 >= head.firstSeq) {
    if (isTerminal(head.state) && after === head.seq) return undefined;
    const position = tasks.position(of, after, context);
    return { ...position, input, ...(counts && { generation: await generationAt(position, after) }) };
  }
  const snapshot = await tasks.load(of.task, historyLength, context);
  const { seq, generation, state } = snapshot.head;
  const first = { item: snapshotItem(snapshot), state };
  return { ...tasks.position(of, seq, context), input, first, ...(counts && { generation }) };
}
