import {
  invalidParams,
  type DeleteTaskPushNotificationConfigRequest,
  type Empty,
  type GetTaskPushNotificationConfigRequest,
  type ListTaskPushNotificationConfigsRequest,
  type ListTaskPushNotificationConfigsResponse,
  type TaskPushNotificationConfig,
} from "@parley/a2a/internal/model/index";
import { Payload, type CallContext, type Reply } from "@parley/a2a/internal/protocol/index";
import { configsOf, type SendDeps } from "./admission.ts";
import type { AgentTasks } from "./agent-tasks.ts";

/* The operations on webhooks. A webhook belongs to a task, so its owner is the one of the task. */

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
