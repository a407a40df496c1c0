import {
  countsInGeneration,
  hasGenerations,
  type SendMessageRequest,
  type SendMessageResponse,
} from "@parley/a2a/internal/model/index";
import type { CallContext, Reply } from "@parley/a2a/internal/protocol/index";
import { assembleLog, roomless } from "../../store/index.ts";
import { EventStream, waitForAnswer } from "../log/index.ts";
import { counted, wrappedTask, type AgentTasks } from "./agent-tasks.ts";
import type { Sends } from "./send-message.ts";

/** SendMessage (A2A 1.0 §3.1.1): answers with the agent's message, or with the task once it is interrupted or over. */
export async function sendMessage(
  tasks: AgentTasks,
  sends: Sends,
  request: SendMessageRequest,
  context: CallContext,
  extensions: readonly string[],
): Promise<Reply<SendMessageResponse>> {
  const admission = sends.accept(tasks.hosted, tasks.ownerOf(context), request, context, extensions);
  const { answer } = admission instanceof Promise ? await admission : admission;
  const accepted = await answer;
  if (accepted.kind === "message") return { payload: accepted.reply };
  const { task, input, log } = accepted;
  const historyLength = request.configuration?.historyLength;
  if (log !== undefined) {
    // The texts stay in memory for as long as the answer does.
    const bytes = log.reduce((sum, { json }) => sum + json.length, 0);
    if (bytes > roomless) await context.reserve?.(bytes);
    const made = wrappedTask(assembleLog(log, tasks.wholeBut(historyLength, context)));
    const generation = (): number => log.filter(({ kind }) => countsInGeneration(kind)).length;
    return counted(made, context, () => new Map([[task.taskId, generation()]]));
  }
  if (request.configuration?.returnImmediately !== true) {
    await waitForAnswer(tasks.position(accepted, input), input, context.signal);
  }
  const snapshot = await tasks.load(task, historyLength, context);
  return counted(wrappedTask(snapshot), context, () => new Map([[task.taskId, snapshot.head.generation]]));
}

/** SendStreamingMessage (§3.1.2). Resolves when the message is accepted. What the agent does with it goes to the stream. */
export async function sendStreamingMessage(
  tasks: AgentTasks,
  sends: Sends,
  request: SendMessageRequest,
  context: CallContext,
  extensions: readonly string[],
): Promise<EventStream> {
  const { answer } = await sends.accept(tasks.hosted, tasks.ownerOf(context), request, context, extensions);
  return new EventStream("SendStreamingMessage", async () => {
    const accepted = await answer;
    if (accepted.kind === "message") return { payload: accepted.reply };
    const { input, made } = accepted;
    const historyLength = request.configuration?.historyLength;
    if (made && historyLength === undefined) {
      // The first record of the log is the task as it was created. Any other stream begins with the task as it is now.
      const counts = hasGenerations(context.version);
      return { ...tasks.position(accepted, 0, context), input, ...(counts && { generation: 0 }) };
    }
    return tasks.stream(accepted, { after: made ? undefined : context.after, input, historyLength }, context);
  });
}
