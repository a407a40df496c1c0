import type { JsonObject, Part } from "@parley/a2a/model";
import type { AgentEvent, Turn } from "@parley/server";
import { hasSeen, type Approval } from "../shared/approvals.ts";
import { fromJson, toJson } from "../shared/json.ts";
import { questionOf } from "../shared/results.ts";
import { viewOf } from "../shared/view.ts";
import { suspend } from "./approvals.ts";
import type { AISDKAgent } from "./port.ts";
import { run, type Execute } from "./tools.ts";

/* Questions of tools, such as tools of `mcpTools()`. The call that asks waits for the user's answer, and the loop waits with it (docs/ai-sdk.md). */

/** A call that has asked the user and has no result yet. */
export interface Asking {
  readonly toolCallId: string;
  readonly toolName: string;
  readonly input: unknown;
  readonly question: readonly Part[];
}

/** A loop whose calls have asked the user, as stored in the state of the task. */
export interface AskingLoop {
  readonly messages: readonly unknown[];
  readonly asking: readonly Asking[];
  /** Calls of the same answer that wait for an approval. The user is asked for these approvals afterwards. */
  readonly approvals: readonly Approval[];
}

interface Stored extends AskingLoop {
  /** The turn that has asked. */
  readonly turn: number;
  /** The length of the history before the question. */
  readonly after: number;
}

interface Step {
  readonly content: readonly { readonly error?: unknown }[];
}

type Stop = (of: { readonly steps: readonly Step[] }) => unknown;

/** Ends the loop after a step in which a tool asked. Call options replace the settings of a `ToolLoopAgent`, whose default is 20 steps. */
export function stopWhenAsked(agent: AISDKAgent): { readonly stopWhen: readonly Stop[] } {
  const { settings } = viewOf<{ settings: { readonly stopWhen?: Stop | readonly Stop[] } }>(agent);
  const { stopWhen: own = ({ steps }: { readonly steps: readonly Step[] }) => steps.length === 20 } = settings ?? {};
  const asked: Stop = ({ steps }) => steps.at(-1)?.content.some(({ error }) => questionOf(error) !== undefined);
  return { stopWhen: [asked, ...(typeof own === "function" ? [own] : own)] };
}

/** Stores the loop, and asks the first question. */
export function ask(turn: Turn, { messages, asking, approvals }: AskingLoop): AgentEvent {
  const after = turn.task?.history?.length ?? 0;
  const loop = { messages: toJson(messages), asking: toJson(asking), approvals: toJson(approvals) };
  turn.setState({ aiSdk: { ...loop, turn: turn.number, after } });
  return turn.inputRequired(asking[0]?.question ?? []);
}

/** The loop with the answer in the message, or the question again. `undefined` if no call has asked. */
export function resume(turn: Turn): AskingLoop | { readonly ask: AgentEvent } | undefined {
  const { aiSdk } = viewOf<{ aiSdk: JsonObject }>(turn.state());
  if (aiSdk?.["asking"] === undefined) return undefined;
  const loop = fromJson(aiSdk) as Stored;
  const question = loop.asking[0]?.question ?? [];
  const shown = new Set(question.map(textOf));
  if (hasSeen(turn, loop.turn, (part) => shown.has(textOf(part)), loop.after)) return loop;
  return { ask: turn.inputRequired(question) };
}

function textOf({ text, data }: Part): string {
  return text ?? JSON.stringify(data ?? null);
}

interface Tool {
  readonly execute?: Execute;
  readonly toModelOutput?: (of: object) => unknown;
}

/** The loop without the messages that followed the asking calls: their errors, and model answers to those errors. */
export function cut(messages: readonly unknown[], asking: readonly Asking[]): Omit<AskingLoop, "approvals"> {
  const at = messages.findLastIndex((each) => callsIn(each, "assistant").has(asking[0]?.toolCallId));
  const calls = callsIn(messages[at], "assistant");
  // In the order of the calls: which of them asks first depends on their speed.
  const waiting = [...calls].flatMap((id) => asking.filter(({ toolCallId }) => toolCallId === id));
  const ids = new Set<unknown>(waiting.map(({ toolCallId }) => toolCallId));
  const end = messages.findIndex((each, index) => index > at && viewOf<Message>(each).role !== "tool");
  const results = messages.slice(at + 1, end < 0 ? undefined : end).flatMap((each) => {
    const content = contentOf(each).filter(({ type, toolCallId }) => type !== "tool-result" || !ids.has(toolCallId));
    return content.length === 0 ? [] : [{ role: "tool", content }];
  });
  return { messages: [...messages.slice(0, at + 1), ...results], asking: waiting };
}

interface Message {
  readonly role: string;
  readonly content: string | readonly MessagePart[];
}

interface MessagePart {
  readonly type: string;
  readonly toolCallId?: unknown;
}

function contentOf(message: unknown): readonly MessagePart[] {
  const { content = [] } = viewOf<Message>(message);
  return typeof content === "string" ? [] : content;
}

function callsIn(message: unknown, role: string): ReadonlySet<unknown> {
  const parts = viewOf<Message>(message).role === role ? contentOf(message) : [];
  return new Set(parts.filter(({ type }) => type === "tool-call").map(({ toolCallId }) => toolCallId));
}

/** Repeats the calls, which continue with the answer. Returns the messages that continue the loop; `undefined` if the turn ended with a question. */
export async function* callAgain(
  turn: Turn,
  agent: AISDKAgent,
  { messages, asking, approvals }: AskingLoop,
): AsyncGenerator<AgentEvent, readonly unknown[] | undefined, void> {
  // Each message answers one call, because the user has not seen the questions of the other calls.
  const [call, ...open] = asking;
  const content: object[] = [];
  if (call !== undefined) {
    const { toolCallId, toolName } = call;
    yield turn.working(`Calling ${toolName.slice(0, 200)}`);
    try {
      content.push({ type: "tool-result", toolCallId, toolName, output: await outputOf(turn, agent, call, messages) });
    } catch (error) {
      turn.signal.throwIfAborted();
      const question = questionOf(error);
      if (question !== undefined) open.unshift({ ...call, question });
      else content.push({ type: "tool-result", toolCallId, toolName, output: errorOf(error) });
    }
  }
  const all = content.length === 0 ? messages : [...messages, { role: "tool", content }];
  if (open.length === 0 && approvals.length === 0) return all;
  yield open.length > 0 ? ask(turn, { messages: all, asking: open, approvals }) : suspend(turn, all, approvals);
  return undefined;
}

function errorOf(error: unknown): object {
  return { type: "error-text", value: error instanceof Error ? error.message : String(error) };
}

/** The result of a call in the format in which the AI SDK gives it to the model. */
async function outputOf(
  { signal: abortSignal }: Turn,
  { tools }: AISDKAgent,
  { toolCallId, toolName, input }: Asking,
  messages: readonly unknown[],
): Promise<unknown> {
  const tool = Object.hasOwn(tools, toolName) ? viewOf<Tool>(Reflect.get(tools, toolName)) : {};
  if (tool.execute === undefined) throw new Error(`The agent has no tool ${toolName}`);
  const execute: Execute = (of, options) => tool.execute?.(of, options);
  const output = await run(execute, input, { toolCallId, abortSignal, messages }, async () => {});
  if (tool.toModelOutput !== undefined) return tool.toModelOutput({ toolCallId, input, output });
  return typeof output === "string" ? { type: "text", value: output } : { type: "json", value: toJson(output) };
}
