import { A2AError, isTerminal } from "../../model/index.ts";
import { statusRecord } from "../log/index.ts";
import type { Runs } from "../supervise/runs.ts";
import type { AgentTasks } from "./agent-tasks.ts";
import type { UnaryHandlers } from "./operations.ts";
import { taskOf } from "./replies.ts";

/** CancelTask (A2A 1.0 §3.1.5): the task is canceled in its log before the answer, whatever its agent does. */
export function cancelTask(tasks: AgentTasks, runs: Pick<Runs, "endTask">): UnaryHandlers["CancelTask"] {
  return async ({ id }, context, extensions) => {
    const head = await tasks.head(id, context);
    const { turn = 1, attempt = 1 } = head.run ?? {};
    const origin = { taskId: id, contextId: head.contextId, turn, attempt, extensions, trace: context.trace };
    const time = Math.max(tasks.settings.clock.now(), head.statusTime);
    const record = statusRecord(origin, { state: "TASK_STATE_CANCELED" }, "system", "", time);
    if (isTerminal(head.state) || !(await runs.endTask(head, record))) {
      throw new A2AError("TaskNotCancelable", undefined, { metadata: { taskId: id } });
    }
    return taskOf(await tasks.load(head.task, undefined, context), context);
  };
}
