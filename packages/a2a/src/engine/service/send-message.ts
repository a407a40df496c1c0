import { countsInGeneration, hasGenerations } from "../../model/index.ts";
import { Payload } from "../../protocol/index.ts";
import { assembleLog, roomless } from "../../store/index.ts";
import { EventStream, messageItem, waitForAnswer } from "../log/index.ts";
import { wholeBut, type AgentTasks } from "./agent-tasks.ts";
import type { CheckedAgent } from "./checks.ts";
import type { StreamHandlers, UnaryHandlers } from "./operations.ts";
import { counted, wrappedTask } from "./replies.ts";
import type { Sends } from "./sends.ts";
import { streamFrom } from "./task-stream.ts";

/** SendMessage (A2A 1.0 §3.1.1): answers with the agent's message, or with the task once it stands still. */
export function sendMessage(hosted: CheckedAgent, tasks: AgentTasks, sends: Sends): UnaryHandlers["SendMessage"] {
  return async (request, context, extensions) => {
    const admission = sends.accept(hosted, tasks.ownerOf(context), request, context, extensions);
    const { answer } = admission instanceof Promise ? await admission : admission;
    const accepted = await answer;
    if (accepted.kind === "message") return { payload: new Payload({ message: accepted.message }) };
    const { task, input, log } = accepted;
    const historyLength = request.configuration?.historyLength;
    if (log !== undefined) {
      // Its texts stay for as long as the answer does.
      const bytes = log.reduce((sum, { json }) => sum + json.length, 0);
      if (bytes > roomless) await context.reserve?.(bytes);
      const made = wrappedTask(assembleLog(log, wholeBut(historyLength, context)));
      const generation = (): number => log.filter(({ kind }) => countsInGeneration(kind)).length;
      return counted(made, context, () => new Map([[task.taskId, generation()]]));
    }
    if (request.configuration?.returnImmediately !== true) {
      await waitForAnswer(tasks.position(accepted, input), input, context.signal);
    }
    const snapshot = await tasks.load(task, historyLength, context);
    return counted(wrappedTask(snapshot), context, () => new Map([[task.taskId, snapshot.head.generation]]));
  };
}

/** SendStreamingMessage (§3.1.2). Resolves when the message is taken in; what becomes of it is the stream's to tell. */
export function sendStreamingMessage(
  hosted: CheckedAgent,
  tasks: AgentTasks,
  sends: Sends,
): StreamHandlers["SendStreamingMessage"] {
  return async (request, context, extensions) => {
    const { answer } = await sends.accept(hosted, tasks.ownerOf(context), request, context, extensions);
    return new EventStream("SendStreamingMessage", async () => {
      const accepted = await answer;
      if (accepted.kind === "message") return messageItem(accepted.message);
      const { input, made } = accepted;
      const historyLength = request.configuration?.historyLength;
      if (made && historyLength === undefined) {
        // Its own first record is the task as it was made; any other stream begins with the task as it stands.
        const counts = hasGenerations(context.version);
        return { ...tasks.position(accepted, 0, context), input, ...(counts && { generation: 0 }) };
      }
      return streamFrom(tasks, accepted, { after: made ? undefined : context.after, input, historyLength }, context);
    });
  };
}
