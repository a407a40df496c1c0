import { A2AError } from "@parley/a2a/internal/model/index";
import { recordBytes, type AppendOutcome, type FeatureEffect } from "../../store/index.ts";
import { tooManyRows } from "../log/index.ts";
import { taskIsFull } from "../shared/errors.ts";
import { queuedTask } from "../run/index.ts";
import { inContext, type Accepted, type Send, type SendDeps } from "./admission.ts";
import type { Retries } from "./retries.ts";

/**
 * Makes the task of a message for which no process has room now. Its agent is called later, so it cannot reply directly: its reply
 * completes the task.
 */
export async function queueMessage(
  { settings, committer, places }: SendDeps,
  retries: Retries,
  send: Send,
  taskId: string,
): Promise<Accepted> {
  const { owner, call, attempt, kept, principal } = send;
  const { message } = send.request;
  const { taskBytes, queuedPerCaller } = settings.limits;
  const contextId = message.contextId ?? settings.ids.next();
  const task = { agent: owner.agent, owner: owner.owner, taskId };
  const record = queuedTask(task, contextId, inContext(message, contextId), call, settings.clock.now());
  const store = (row: FeatureEffect): Promise<AppendOutcome> => {
    const effects = [...(attempt === undefined ? [] : [attempt.once]), ...kept, row];
    const item = { task, create: { contextId }, records: [record], maxBytes: taskBytes, effects };
    return committer.append(item, undefined, { by: principal });
  };
  const outcome = await places.enter(task, { turn: 1, input: 1 }, store, queuedPerCaller);
  if (outcome.ok) return { kind: "task", task, contextId, input: 1, log: undefined, made: true };
  if (outcome.reason === "duplicate" && outcome.once !== undefined) return retries.join(owner, outcome.once, attempt);
  if (outcome.reason !== "full") throw new A2AError("Unavailable", "The message could not be stored");
  throw recordBytes(record) > taskBytes ? taskIsFull(taskBytes) : tooManyRows();
}
