import {
  A2AError,
  countsInGeneration,
  hasGenerations,
  invalidParams,
  isTerminal,
  jsonHash,
  type CancelTaskRequest,
  type DeleteTaskPushNotificationConfigRequest,
  type Empty,
  type GetTaskPushNotificationConfigRequest,
  type GetTaskRequest,
  type GetTaskRequestDraft,
  type ListTaskPushNotificationConfigsRequest,
  type ListTaskPushNotificationConfigsResponse,
  type ListTasksRequest,
  type ListTasksResponse,
  type SendMessageRequest,
  type SendMessageResponse,
  type SubscribeToTaskRequest,
  type Task,
  type TaskPushNotificationConfig,
} from "@parley/a2a/internal/model/index";
import { Payload, type CallContext, type Reply } from "@parley/a2a/internal/protocol/index";
import { assembleLog, roomless, type ListPosition, type ListQuery } from "../../store/index.ts";
import { EventStream, waitForAnswer, waitForGeneration, readTimeline } from "../log/index.ts";
import type { Runs } from "../supervise/index.ts";
import { configsOf, type SendDeps } from "./admission.ts";
import { counted, hasRoom, pageOf, taskReply, wrappedTask, type AgentTasks, type WantedStream } from "./agent-tasks.ts";
import type { Sends } from "./send-message.ts";
import { defined } from "@parley/a2a/internal/base/defined";

/** SendMessage (A2A 1.0 §3.1.1): answers with the agent's message, or with the task once it is interrupted or terminal. */
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
    // The texts stay in memory as long as the answer.
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

/** SendStreamingMessage (§3.1.2). Resolves when the message is accepted. The stream has the agent's events. */
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
      // A stream from the first record begins with the task at its creation, any other stream with the current task.
      const counts = hasGenerations(context.version);
      return { ...tasks.position(accepted, 0, context), input, ...(counts && { generation: 0 }) };
    }
    return tasks.stream(accepted, { after: made ? undefined : context.after, input, historyLength }, context);
  });
}

/**
 * GetTask (A2A 1.0 §3.1.3). In the 1.1 draft it may wait for a later generation than the caller's, and the answer has the
 * timeline of the task, unless the caller requests no history.
 */
export async function getTask(tasks: AgentTasks, request: GetTaskRequest, context: CallContext): Promise<Reply<Task>> {
  const { id, historyLength, currentGeneration }: GetTaskRequestDraft = request;
  if (currentGeneration !== undefined && hasGenerations(context.version)) {
    const head = await tasks.head(id, context);
    const { longPoll, clock } = tasks.settings;
    const position = tasks.position(head, head.seq);
    await waitForGeneration(position, head, currentGeneration, longPoll, clock, context.signal);
  }
  const snapshot = await tasks.load({ taskId: id, ...tasks.ownerOf(context) }, historyLength, context);
  const reply = taskReply(snapshot, context);
  if (!hasGenerations(context.version) || historyLength === 0) return reply;
  const { store, limits } = tasks.settings;
  const timeline = await readTimeline(store, snapshot.head, limits.pageBytes, hasRoom(context) ? context : undefined);
  return timeline === undefined ? reply : { ...reply, timeline: { payload: reply.payload, ...timeline } };
}

/** CancelTask (§3.1.5). The cancellation is stored before the answer, even if the agent ignores it. */
export async function cancelTask(
  tasks: AgentTasks,
  runs: Pick<Runs, "endTask">,
  { id }: CancelTaskRequest,
  context: CallContext,
  extensions: readonly string[],
): Promise<Reply<Task>> {
  const head = await tasks.head(id, context);
  const cause = { extensions, trace: context.trace, by: context.principal };
  if (isTerminal(head.state) || !(await runs.endTask(head, { state: "TASK_STATE_CANCELED" }, cause))) {
    throw new A2AError("TaskNotCancelable", undefined, { metadata: { taskId: id } });
  }
  return taskReply(await tasks.load(head.task, undefined, context), context);
}

/** SubscribeToTask (§3.1.6). */
export async function subscribeToTask(
  tasks: AgentTasks,
  { id }: SubscribeToTaskRequest,
  context: CallContext,
): Promise<EventStream> {
  const { task, contextId, state } = await tasks.head(id, context);
  const { after } = context;
  if (isTerminal(state) && after === undefined) {
    throw new A2AError("UnsupportedOperation", "This task is over: read it with GetTask", {
      metadata: { taskId: id, state },
    });
  }
  const wanted: WantedStream = { after, input: 0, historyLength: undefined };
  return new EventStream("SubscribeToTask", () => tasks.stream({ task, contextId }, wanted, context));
}

/** ListTasks (§3.1.4). */
export async function listTasks(
  tasks: AgentTasks,
  request: ListTasksRequest,
  context: CallContext,
): Promise<Reply<ListTasksResponse>> {
  const { store, limits, mergeTextParts } = tasks.settings;
  const owner = tasks.ownerOf(context);
  const { pageSize = 50 } = request;
  if (!Number.isInteger(pageSize) || pageSize < 1 || pageSize > 100) {
    throw invalidParams([{ field: "pageSize", description: `must be between 1 and 100, got ${pageSize}` }]);
  }
  const scope = JSON.stringify([owner.agent, owner.owner]);
  const query = queryOf(request, pageSize, limits.pageBytes, scope, context);
  const found = await store.list(owner, { ...query, mergeTextParts });
  const page = pageOf(found.tasks, {
    nextPageToken: found.next === undefined ? "" : encodePageToken(found.next, scope, request),
    pageSize,
    totalSize: found.total,
  });
  if (!hasGenerations(context.version)) return page;
  const { tasks: listed } = page.payload.value;
  const heads = await Promise.all(listed.map(({ id }) => store.head(owner, id)));
  return counted(page, context, () => new Map(listed.map(({ id }, at) => [id, heads[at]?.generation ?? 0])));
}

function queryOf(
  request: ListTasksRequest,
  limit: number,
  bytes: number,
  scope: string,
  context: CallContext,
): ListQuery {
  const { contextId, status, pageToken, historyLength, statusTimestampAfter, includeArtifacts } = request;
  return {
    limit,
    bytes,
    artifacts: includeArtifacts === true,
    ...defined({
      room: hasRoom(context) ? context : undefined,
      contextId,
      state: status,
      since: statusTimestampAfter === undefined ? undefined : Date.parse(statusTimestampAfter),
      history: historyLength,
      after: pageToken === undefined ? undefined : decodePageToken(pageToken, scope, request),
    }),
  };
}

/*
 * A page token is a position in a list (A2A 1.0 §3.1.4). It is valid for one caller and one set of filters, because its
 * checksum detects tokens of other lists. The checksum is not a secret, because the scope of the query limits access, not
 * the token.
 */

function encodePageToken({ statusTime, taskId }: ListPosition, scope: string, request: ListTasksRequest): string {
  const place = `${statusTime}.${taskId}`;
  return `${checksum(place, scope, request)}.${place}`;
}

function decodePageToken(token: string, scope: string, request: ListTasksRequest): ListPosition {
  const [, sum, place = "", statusTime, taskId = ""] = /^([0-9a-f]{16})\.((\d{1,16})\.(.+))$/s.exec(token) ?? [];
  if (sum === undefined || sum !== checksum(place, scope, request)) {
    throw invalidParams([{ field: "pageToken", description: "was not issued by this list" }]);
  }
  return { statusTime: Number(statusTime), taskId };
}

function checksum(place: string, scope: string, request: ListTasksRequest): string {
  const { contextId = null, status = null, statusTimestampAfter = null } = request;
  return jsonHash([place, scope, contextId, status, statusTimestampAfter]);
}

/* The operations on webhooks. A webhook belongs to a task, and has the task's owner. */

type Deps = Pick<SendDeps, "configs">;

/** CreateTaskPushNotificationConfig (A2A 1.0 §3.1.7). */
export async function createWebhook(
  tasks: AgentTasks,
  deps: Deps,
  request: TaskPushNotificationConfig,
  context: CallContext,
  extensions: readonly string[],
): Promise<Reply<TaskPushNotificationConfig>> {
  const configs = await configsOf(deps);
  const { taskId = "" } = request;
  if (taskId === "") throw invalidParams([{ field: "taskId", description: "is required" }]);
  const head = await tasks.head(taskId, context);
  return { payload: new Payload(await configs.create(head, request, { version: context.version, extensions })) };
}

/** GetTaskPushNotificationConfig (§3.1.8). */
export async function getWebhook(
  tasks: AgentTasks,
  deps: Deps,
  { taskId, id }: GetTaskPushNotificationConfigRequest,
  context: CallContext,
): Promise<Reply<TaskPushNotificationConfig>> {
  const configs = await configsOf(deps);
  return { payload: new Payload(await configs.get({ taskId, ...tasks.ownerOf(context) }, id)) };
}

/** ListTaskPushNotificationConfigs (§3.1.9). */
export async function listWebhooks(
  tasks: AgentTasks,
  deps: Deps,
  request: ListTaskPushNotificationConfigsRequest,
  context: CallContext,
): Promise<Reply<ListTaskPushNotificationConfigsResponse>> {
  const configs = await configsOf(deps);
  const task = { taskId: request.taskId, ...tasks.ownerOf(context) };
  return { payload: new Payload(await configs.list(task, request)) };
}

/** DeleteTaskPushNotificationConfig (§3.1.10). */
export async function deleteWebhook(
  tasks: AgentTasks,
  deps: Deps,
  { taskId, id }: DeleteTaskPushNotificationConfigRequest,
  context: CallContext,
): Promise<Reply<Empty>> {
  const configs = await configsOf(deps);
  await configs.delete({ taskId, ...tasks.ownerOf(context) }, id);
  return { payload: new Payload({}) };
}
