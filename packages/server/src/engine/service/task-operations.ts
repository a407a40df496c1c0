import {
  A2AError,
  hasGenerations,
  invalidParams,
  isTerminal,
  jsonHash,
  type CancelTaskRequest,
  type GetTaskRequest,
  type GetTaskRequestDraft,
  type ListTasksRequest,
  type ListTasksResponse,
  type SubscribeToTaskRequest,
  type Task,
} from "@parley/a2a/internal/model/index";
import type { CallContext, Reply } from "@parley/a2a/internal/protocol/index";
import type { ListPosition, ListQuery } from "../../store/index.ts";
import { EventStream, waitForGeneration } from "../log/index.ts";
import type { Runs } from "../supervise/index.ts";
import { counted, hasRoom, pageOf, taskReply, type AgentTasks, type WantedStream } from "./agent-tasks.ts";

/**
 * GetTask (A2A 1.0 §3.1.3). In the 1.1 draft it may wait for a generation beyond the one that the caller knows, and the answer has the
 * timeline of the task, unless the caller wants no history.
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
  // Loaded where it is asked for: few callers speak the draft.
  const { readTimeline } = await import("../log/timeline.ts");
  const timeline = await readTimeline(store, snapshot.head, limits.pageBytes, hasRoom(context) ? context : undefined);
  return timeline === undefined ? reply : { ...reply, timeline: { payload: reply.payload, ...timeline } };
}

/** CancelTask (§3.1.5). The task is canceled in its log before the answer, whatever its agent does. */
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

/** The query for the store. `scope`: whose page tokens are accepted. */
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
    ...(hasRoom(context) && { room: context }),
    ...(contextId !== undefined && { contextId }),
    ...(status !== undefined && { state: status }),
    ...(statusTimestampAfter !== undefined && { since: Date.parse(statusTimestampAfter) }),
    ...(historyLength !== undefined && { history: historyLength }),
    ...(pageToken !== undefined && { after: decodePageToken(pageToken, scope, request) }),
  };
}

/*
 * A page token is a position in a list (A2A 1.0 §3.1.4). It is accepted from one caller for one set of filters: its checksum
 * tells it from a token that this list did not give out. The checksum is no secret. Access is limited by the scope of the
 * query and not by the token.
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
