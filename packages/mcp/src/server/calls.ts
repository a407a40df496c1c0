import type { Client, MessageInit, Part, Task } from "@parley/a2a";
import { hasCode } from "@parley/a2a";
import { isTerminal, textOf } from "@parley/a2a/model";
import { line } from "@parley/a2a/protocol";
import {
  inputRequired,
  ProtocolError,
  ProtocolErrorCode,
  type CallToolResult,
  type InputRequest,
  type InputRequiredResult,
  type ServerContext,
} from "@modelcontextprotocol/server";
import type * as z from "zod";
import type { BridgeDeps, CallerView } from "./agent.ts";
import { followTask, sendAndFollow, type Following, type Reached } from "./follow.ts";
import { answerOf, idOf, questionOf, type ElicitModes } from "./questions.ts";
import { replyResult, taskResult, type Names } from "./results.ts";
import { taskView } from "./task-view.ts";
import { AnswerArguments, SkillArguments, TaskArguments, type SkillInput } from "./skills.ts";

/* Tool calls: for skills, and for continuing a task. */

/** One request of a client. */
export interface ToolRequest {
  readonly deps: BridgeDeps;
  readonly view: CallerView;
  readonly context: ServerContext;
  readonly modes: ElicitModes;
  /** When the request arrived. */
  readonly begin: number;
  /** Asks the client within the request, as in 2025-11-25. Throws if the client cannot answer. If absent, the client asks its user and calls anew. */
  readonly ask?: ((question: InputRequest, signal: AbortSignal) => Promise<unknown>) | undefined;
  /** Whether the client accepts task handles (SEP-2663). */
  readonly takesTasks: boolean;
  /** Called with each state of a task. */
  see(task: Task): void;
}

export type ToolAnswer = CallToolResult | InputRequiredResult;

/** Calls a tool by name. Throws ProtocolError for an unknown tool. Errors from the agent become results. */
export async function callTool(request: ToolRequest, name: string, given: unknown): Promise<ToolAnswer> {
  try {
    const round = await nextRound(request);
    if (round !== undefined) return round;
    if (name === "get_task") return await getTask(request, checked(TaskArguments, given).taskId);
    if (name === "cancel_task") return await cancelTask(request, checked(TaskArguments, given).taskId);
    if (name === "answer_task") return await answerTask(request, checked(AnswerArguments, given));
    const found = request.deps.tools.find(({ tool }) => tool.name === name);
    if (found === undefined)
      throw new ProtocolError(ProtocolErrorCode.InvalidParams, `Unknown tool: ${line(name, 100)}`);
    return await callSkill(request, found.skill, checked(SkillArguments, given));
  } catch (error) {
    return failed(request, error);
  }
}

/** Turns an error into a result that a model can read. Throws protocol errors. */
function failed({ context, deps }: ToolRequest, error: unknown): CallToolResult {
  if (error instanceof ProtocolError || context.mcpReq.signal.aborted) throw error;
  if (!(error instanceof BadArguments) && !hasCode(error)) deps.logger.error("Tool call failed", { cause: error });
  const text = error instanceof Error ? error.message : "The call failed";
  return { content: [{ type: "text", text: line(text, 2000) }], isError: true };
}

/** The arguments are invalid, or refer to a task or conversation that the caller does not have. */
class BadArguments extends Error {}

function checked<T>(schema: z.ZodType<T>, given: unknown): T {
  const { success, data, error } = schema.safeParse(given ?? {});
  if (success) return data;
  const [issue] = error.issues;
  throw new BadArguments(`Invalid arguments: ${issue?.path.join(".") ?? ""} ${issue?.message ?? ""}`);
}

/** The id of a task of this caller. Another caller's handle and an unknown handle cause the same error. */
async function taskIdOf({ view }: Pick<ToolRequest, "view">, handle: string): Promise<string> {
  const id = await view.handles.open("task", handle);
  if (id === undefined) throw new BadArguments("There is no such task");
  return id;
}

async function contextIdOf({ view }: ToolRequest, handle: string): Promise<string> {
  const id = await view.handles.open("context", handle);
  if (id === undefined) throw new BadArguments("There is no such conversation");
  return id;
}

/** The message of a call. */
async function messageOf(
  request: ToolRequest,
  skill: string | undefined,
  { message, files = [], data, contextId, taskId }: SkillInput,
): Promise<MessageInit> {
  const parts: Part[] = [];
  if (message !== "" || (files.length === 0 && data === undefined)) parts.push({ text: message });
  for (const { name, mediaType, bytes, url } of files) {
    const about = { ...(name !== undefined && { filename: name }), ...(mediaType !== undefined && { mediaType }) };
    if (bytes !== undefined) parts.push({ raw: bytes, ...about });
    else if (url !== undefined) parts.push({ url, ...about });
  }
  if (data !== undefined) parts.push({ data, mediaType: "application/json" });
  return {
    parts,
    ...(skill !== undefined && { metadata: { skillId: skill } }),
    ...(contextId !== undefined && { contextId: await contextIdOf(request, contextId) }),
    ...(taskId !== undefined && { taskId: await taskIdOf(request, taskId) }),
  };
}

async function callSkill(request: ToolRequest, skill: string | undefined, input: SkillInput): Promise<ToolAnswer> {
  const message = await messageOf(request, skill, input);
  return sent(request, message, request.takesTasks);
}

async function answerTask(request: ToolRequest, input: SkillInput & { readonly taskId: string }): Promise<ToolAnswer> {
  return sent(request, await messageOf(request, undefined, input));
}

/** Sends a message, and returns its outcome. With `asTask`, returns the handle of the task as soon as the agent has stored it. */
async function sent(request: ToolRequest, message: MessageInit, asTask = false): Promise<ToolAnswer> {
  const { client } = request.view;
  let begun: Task | undefined;
  const following = followingOf(request, await answeredBy(client, message));
  try {
    const see = (task: Task): void => following.see((begun = task));
    const reached = await sendAndFollow(client, message, { ...following, untilExists: asTask, see });
    if (asTask && reached.task !== undefined && !isTerminal(reached.task.status.state)) {
      return { content: [], resultType: "task", ...(await taskView(request, reached.task)) };
    }
    return await toAnswer(request, reached);
  } catch (error) {
    // Cancels a new task, because its caller gave up before it got the handle.
    const isNew = message.taskId === undefined && begun !== undefined && !isTerminal(begun.status.state);
    if (request.context.mcpReq.signal.aborted && isNew && begun !== undefined)
      await cancelQuietly(request, client, begun.id);
    throw error;
  }
}

async function cancelQuietly({ deps }: ToolRequest, client: Client, id: string): Promise<void> {
  try {
    await client.cancelTask(id);
  } catch (error) {
    deps.logger.warn("Failed to cancel the task of a canceled call", { taskId: id, cause: error });
  }
}

/** The question that a message answers. */
async function answeredBy(client: Client, { taskId }: MessageInit): Promise<string | undefined> {
  if (taskId === undefined) return undefined;
  return idOf(await client.getTask({ id: taskId, historyLength: 0 }));
}

function followingOf(request: ToolRequest, answered?: string): Following {
  const { deps, context } = request;
  const { clock, maxWaitMs } = deps;
  const progress = progressOf(context);
  return {
    clock,
    maxWaitMs: Math.max(Math.min(minWaitMs, maxWaitMs), remainingMs(request)),
    signal: context.mcpReq.signal,
    answered,
    see(task) {
      request.see(task);
      progress(task);
    },
  };
}

/** Minimum wait after an answer, so that it reaches the agent. */
const minWaitMs = 2000;

/** Milliseconds left for a call. In 2025-11-25 one request spans all its questions, and the client's timeout covers all these questions. */
function remainingMs({ deps: { clock, maxWaitMs }, begin }: ToolRequest): number {
  return maxWaitMs - (clock.elapsed() - begin);
}

/** Maximum progress notifications per call, because an agent may report faster than a client reads. */
const maxProgress = 1000;

/** Sends the agent's progress messages to a client that requested them. */
function progressOf({ mcpReq }: ServerContext): (task: Task) => void {
  const progressToken = mcpReq._meta?.progressToken;
  if (progressToken === undefined) return () => undefined;
  let progress = 0;
  let last: string | undefined;
  return ({ status: { message }, artifacts = [] }) => {
    const now = `${message?.messageId} ${artifacts.length}`;
    if (progress === maxProgress || now === last || (message === undefined && artifacts.length === 0)) return;
    last = now;
    progress += 1;
    const said = message === undefined ? {} : { message: line(textOf(message), 500) };
    // Ignores errors: if the client disconnects, the signal ends the call.
    mcpReq.notify({ method: "notifications/progress", params: { progressToken, progress, ...said } }).catch(() => {});
  };
}

async function getTask(request: ToolRequest, handle: string): Promise<ToolAnswer> {
  const id = await taskIdOf(request, handle);
  return toAnswer(request, await followTask(request.view.client, id, followingOf(request)));
}

async function cancelTask(request: ToolRequest, handle: string): Promise<ToolAnswer> {
  const id = await taskIdOf(request, handle);
  const task = await request.view.client.cancelTask(id);
  request.see(task);
  return resultOf(request, task);
}

/** The result, or the question of the task if the client can show questions. */
async function toAnswer(request: ToolRequest, { task, message, timedOut }: Reached): Promise<ToolAnswer> {
  if (task === undefined) {
    if (message !== undefined) {
      const names = await namesOf(request, { contextId: message.contextId });
      return replyResult(message, names, request.deps.limits);
    }
    const seconds = Math.round(request.deps.maxWaitMs / 1000);
    const why = timedOut === true ? `has not answered within ${seconds} s` : "sent no answer";
    return {
      content: [{ type: "text", text: `The agent ${why}. It may still have received the message.` }],
      isError: true,
    };
  }
  // At the time limit, the user may still have the page open, so do not show the question again.
  const question = timedOut === true ? undefined : questionOf(task, request.modes);
  const isLate = request.ask !== undefined && remainingMs(request) <= 0;
  if (question === undefined || isLate) return resultOf(request, task);
  if (request.ask !== undefined) return answered(request, task, await askWithin(request, request.ask, question));
  const { taskId } = await namesOf(request, { taskId: task.id });
  const requestState = JSON.stringify({ task: taskId, question: idOf(task) });
  return inputRequired({ inputRequests: { [answerKey]: question }, requestState });
}

/** The client's answer. `undefined` if the client did not answer within the time limit of the call. */
async function askWithin(
  request: ToolRequest,
  ask: NonNullable<ToolRequest["ask"]>,
  question: InputRequest,
): Promise<unknown> {
  const { deps, context } = request;
  const { signal } = context.mcpReq;
  const limit = new AbortController();
  const stop = deps.clock.after(remainingMs(request), () => limit.abort());
  try {
    return await ask(question, AbortSignal.any([signal, limit.signal]));
  } catch (error) {
    if (signal.aborted) throw error;
    if (!limit.signal.aborted) deps.logger.warn("The client did not answer a question", { cause: error });
    return undefined;
  } finally {
    stop();
  }
}

const answerKey = "answer";

/** Handles the retry of a call whose task asked a question, by sending the answer. */
async function nextRound(request: ToolRequest): Promise<ToolAnswer | undefined> {
  const { requestState, inputResponses } = request.context.mcpReq;
  const round = roundIn(requestState());
  if (round === undefined) return undefined;
  const id = await taskIdOf(request, round.task);
  const { client } = request.view;
  const task = await client.getTask(id);
  // The question was already answered, or this is a late duplicate of the retry.
  if (idOf(task) !== round.question) return getTask(request, round.task);
  return answered(request, task, inputResponses?.[answerKey]);
}

/** Sends a client's answer to the question of a task, and follows the task. */
async function answered(request: ToolRequest, task: Task, given: unknown): Promise<ToolAnswer> {
  const question = idOf(task);
  const answer = answerOf(task, given);
  // A repeated retry has the same id, so the agent deduplicates it.
  const messageId = `mcp-${question}`;
  if (answer.kind === "parts") return sent(request, { messageId, taskId: task.id, parts: answer.parts });
  if (answer.kind !== "opened") return resultOf(request, task);
  return toAnswer(request, await followTask(request.view.client, task.id, followingOf(request, question)));
}

function roundIn(state: unknown): { readonly task: string; readonly question: string } | undefined {
  if (typeof state !== "string") return undefined;
  try {
    const value: unknown = JSON.parse(state);
    if (typeof value !== "object" || value === null || !("task" in value) || !("question" in value)) return undefined;
    const { task, question } = value;
    return typeof task === "string" && typeof question === "string" ? { task, question } : undefined;
  } catch {
    return undefined;
  }
}

export async function resultOf(request: Pick<ToolRequest, "view" | "deps">, task: Task): Promise<CallToolResult> {
  const names = await namesOf(request, { taskId: task.id, contextId: task.contextId });
  return taskResult(task, names, request.deps.limits);
}

/** Replaces ids by handles. */
async function namesOf({ view }: Pick<ToolRequest, "view">, { taskId, contextId }: Names): Promise<Names> {
  const { handles } = view;
  return {
    taskId: taskId === undefined ? undefined : await handles.seal("task", taskId),
    contextId: contextId === undefined ? undefined : await handles.seal("context", contextId),
  };
}
