import { hasGenerations, invalidParams, type GetTaskRequestDraft, type ListTasksRequest } from "../../model/index.ts";
import type { CallContext } from "../../protocol/index.ts";
import type { ListQuery } from "../../store/index.ts";
import { waitForGeneration } from "../log/index.ts";
import { hasRoom, type AgentTasks } from "./agent-tasks.ts";
import type { UnaryHandlers } from "./operations.ts";
import { decodePageToken, encodePageToken } from "./page-token.ts";
import { counted, pageOf, taskOf } from "./replies.ts";

/** GetTask (A2A 1.0 §3.1.3). In the 1.1 draft it may wait for a generation beyond the one that the caller knows. */
export function getTask(tasks: AgentTasks): UnaryHandlers["GetTask"] {
  return async (request, context) => {
    const { id, historyLength, currentGeneration }: GetTaskRequestDraft = request;
    if (currentGeneration !== undefined && hasGenerations(context.version)) {
      const head = await tasks.head(id, context);
      const { longPoll, clock } = tasks.settings;
      const position = tasks.position(head, head.seq);
      await waitForGeneration(position, head, currentGeneration, longPoll, clock, context.signal);
    }
    return taskOf(await tasks.load({ taskId: id, ...tasks.ownerOf(context) }, historyLength, context), context);
  };
}

/** ListTasks (§3.1.4). */
export function listTasks(tasks: AgentTasks): UnaryHandlers["ListTasks"] {
  return async (request, context) => {
    const { store, limits } = tasks.settings;
    const owner = tasks.ownerOf(context);
    const { pageSize = 50 } = request;
    if (!Number.isInteger(pageSize) || pageSize < 1 || pageSize > 100) {
      throw invalidParams([{ field: "pageSize", description: `must be between 1 and 100, got ${pageSize}` }]);
    }
    const scope = JSON.stringify([owner.agent, owner.owner]);
    const found = await store.list(owner, queryOf(request, pageSize, limits.pageBytes, scope, context));
    const page = pageOf(found.tasks, {
      nextPageToken: found.next === undefined ? "" : encodePageToken(found.next, scope, request),
      pageSize,
      totalSize: found.total,
    });
    if (!hasGenerations(context.version)) return page;
    const { tasks: listed } = page.payload.value;
    const heads = await Promise.all(listed.map(({ id }) => store.head(owner, id)));
    return counted(page, context, () => new Map(listed.map(({ id }, at) => [id, heads[at]?.generation ?? 0])));
  };
}

/** A request as the store is asked. `scope` is what its page tokens are good for. */
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
