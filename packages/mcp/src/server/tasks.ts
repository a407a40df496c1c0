import { hasCode, type Task } from "@parley/a2a";
import { isTerminal } from "@parley/a2a/model";
import { line } from "@parley/a2a/protocol";
import {
  MissingRequiredClientCapabilityError,
  ProtocolError,
  ProtocolErrorCode,
  type InputRequest,
  type Server,
  type ServerContext,
} from "@modelcontextprotocol/server";
import * as z from "zod";
import { resultOf, type ToolRequest } from "./calls.ts";
import { sendAndFollow } from "./follow.ts";
import { answerOf, idOf, questionOf } from "./questions.ts";
import { taskView } from "./task-view.ts";

/*
 * The tasks extension (SEP-2663). The A2A task holds all state, so handles outlive the bridge. The SDK does not implement the extension yet, so
 * these handlers do the work of the SDK's future TaskStore, with the agent as the store.
 */

/** The name of the extension. */
const tasksExtension = "io.modelcontextprotocol/tasks";

/** Whether the client of a request accepts task handles. */
export function takesTasks(capabilities: { readonly extensions?: object | undefined } | undefined): boolean {
  return capabilities?.extensions !== undefined && tasksExtension in capabilities.extensions;
}

const TaskParams = z.looseObject({ taskId: z.string() });
const result = z.looseObject({});

/** Adds the methods of the extension to a 2026-07-28 server. */
export function serveTasks(server: Server, requestOf: (context: ServerContext) => Promise<ToolRequest>): void {
  server.registerCapabilities({ extensions: { [tasksExtension]: {} } });
  const asked = async (context: ServerContext, handle: string): Promise<{ request: ToolRequest; task: Task }> => {
    const request = await requestOf(context);
    if (!request.takesTasks) {
      throw new MissingRequiredClientCapabilityError({
        requiredCapabilities: { extensions: { [tasksExtension]: {} } },
      });
    }
    return { request, task: await taskOf(request, handle) };
  };
  server.setRequestHandler("tasks/get", { params: TaskParams, result }, async ({ taskId }, context) => {
    const { request, task } = await asked(context, taskId);
    request.see(task);
    const view = await taskView(request, task);
    const waits = !isTerminal(task.status.state) && questionOf(task, request.modes);
    return {
      ...view,
      ...(waits && { inputRequests: { [idOf(task)]: waits } satisfies Record<string, InputRequest> }),
      ...(view.status === "completed" && { result: await resultOf(request, task) }),
    };
  });
  server.setRequestHandler("tasks/update", { params: TaskParams, result }, async ({ taskId }, context) => {
    const { request, task } = await asked(context, taskId);
    // The SDK moves the responses from the parameters to the context.
    await answer(request, task, context.mcpReq.inputResponses ?? {});
    return {};
  });
  server.setRequestHandler("tasks/cancel", { params: TaskParams, result }, async ({ taskId }, context) => {
    const { request, task } = await asked(context, taskId);
    try {
      request.see(await request.view.client.cancelTask(task.id));
    } catch (error) {
      // The task may already have ended, which is no error, because a cancel is only a request.
      if (!hasCode(error, "TaskNotCancelable")) throw failure(request, error);
    }
    return {};
  });
}

/** Sends the answer to the current question of a task. Answers to older questions have no effect. */
async function answer(request: ToolRequest, task: Task, responses: Readonly<Record<string, unknown>>): Promise<void> {
  const question = idOf(task);
  const answered = answerOf(task, responses[question]);
  if (answered.kind !== "parts") return;
  const { deps, view, context } = request;
  const message = { messageId: `mcp-${question}`, taskId: task.id, parts: answered.parts };
  const { signal } = context.mcpReq;
  const { clock, maxWaitMs } = deps;
  const following = { clock, maxWaitMs, signal, answered: question, untilExists: true, see: request.see };
  try {
    await sendAndFollow(view.client, message, following);
  } catch (error) {
    throw failure(request, error);
  }
}

async function taskOf({ deps, view }: ToolRequest, handle: string): Promise<Task> {
  const id = await view.handles.open("task", handle);
  try {
    if (id !== undefined && id !== "") return await view.client.getTask(id);
  } catch (error) {
    if (!hasCode(error, "TaskNotFound")) throw failure({ deps }, error);
  }
  throw new ProtocolError(ProtocolErrorCode.InvalidParams, "There is no such task");
}

function failure({ deps }: Pick<ToolRequest, "deps">, error: unknown): ProtocolError {
  deps.logger.warn("Agent call failed", { cause: error });
  const text = hasCode(error) && error instanceof Error ? line(error.message, 500) : "The agent is unreachable";
  return new ProtocolError(ProtocolErrorCode.InternalError, text);
}
