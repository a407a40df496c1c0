import type { Message } from "../../model/index.ts";
import type { AppendOutcome, StoredRun, Store, TaskHead } from "../../store/index.ts";
import type { StoredCall } from "../log/index.ts";
import type { HostedAgent } from "../options.ts";
import type { TaskRunInit } from "../run/index.ts";

/** What a lost run needs of its task to be started again, once this process holds its lease. Rejects when the log does not have it. */
export async function readLostRun(
  store: Store,
  hosted: HostedAgent,
  { task, contextId, bytes }: TaskHead,
  run: StoredRun,
  { seq, fence }: Extract<AppendOutcome, { readonly ok: true }>,
): Promise<TaskRunInit> {
  const { taskId } = task;
  const input = (await store.read(task, taskId, { after: run.input - 1, limit: 1 }))?.records[0];
  if (input?.call === undefined) throw new Error("The message of the turn is not in the log");
  const head = await store.head(task, taskId);
  if (head === undefined) throw new Error("The task is gone");
  const { state, checkpoint } = head;
  // The first turn made the task: to the agent there was none before, whatever its attempt.
  const before = run.turn === 1 ? undefined : await store.load(task, taskId, { artifacts: true });
  return {
    hosted,
    key: task,
    bytes,
    contextId,
    message: messageOf(input.kind, input.json),
    call: JSON.parse(input.call) as StoredCall,
    start: { seq, state, fence, run, mayHaveMessages: true },
    ...(before !== undefined && { task: before.task }),
    ...(checkpoint !== undefined && { checkpoint }),
  };
}

/** The user's message in a record: of kind `message`, or `task`, whose history begins with it. */
function messageOf(kind: string, json: string): Message {
  const event = JSON.parse(json) as { history?: readonly Message[] } | Message;
  return kind === "task" ? ((event as { history: readonly Message[] }).history[0] as Message) : (event as Message);
}
