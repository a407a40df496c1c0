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
 * The tasks extension (SEP-2663). The A2A task is the state, so handles survive the bridge. The SDK has no runtime for it yet: these handlers
 * do what its TaskStore will do, with the agent as the store.
 */

/** The extension. */
const tasksExtension = "io.modelcontextprotocol/tasks";

/** Whether the client of a request can take the handle of a task. */
export function takesTasks(capabilities: { readonly extensions?: object | undefined } | undefined): boolean {
  return capabilities?.extensions !== undefined && tasksExtension in capabilities.extensions;
}

const TaskParams = z.looseObject({ taskId: z.string() });
const result = z.looseObject({});

/** Adds the methods of the extension to a server of 2026-07-28. */
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
    // The SDK takes them out of the parameters.
    await answer(request, task, context.mcpReq.inputResponses ?? {});
    return {};
  });
  server.setRequestHandler("tasks/cancel", { params: TaskParams, result }, async ({ taskId }, context) => {
    const { request, task } = await asked(context, taskId);
    try {
      request.see(await request.view.client.cancelTask(task.id));
    } catch (error) {
      // It has ended already: cancels are requests.
      if (!hasCode(error, "TaskNotCancelable")) throw failure(request, error);
    }
    return {};
  });
}

/** Sends the answer to the question that a task asks now. Answers to older questions have no effect. */
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
  deps.logger.warn("Call of the agent failed", { cause: error });
  const text = hasCode(error) && error instanceof Error ? line(error.message, 500) : "The agent cannot be reached";
  return new ProtocolError(ProtocolErrorCode.InternalError, text);
}
