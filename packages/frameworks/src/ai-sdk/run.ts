import { data, type Part } from "@parley/a2a/model";
import type { AgentEvent, ArtifactWriter, Turn } from "@parley/server";
import { toPlainJson } from "../shared/json.ts";
import { failed, faults, isCut, metadataOf, succeeded, type Ended } from "../shared/outcome.ts";
import { questionOf } from "../shared/results.ts";
import { viewOf } from "../shared/view.ts";
import { approvalOf, suspend, type ApprovalRequest } from "./approvals.ts";
import type { AISDKAgent, AISDKResult } from "./port.ts";
import { ask, cut, stopWhenAsked, type Asking } from "./questions.ts";

/* One run of an agent: converts the parts of its stream to events of the turn. */

interface RunOptions {
  readonly reasoning: boolean;
  /** Whether a replay repeats the text pieces of the stream exactly. Each piece then becomes a chunk. */
  readonly pieces: boolean;
  /** The agent's output mode, such as `object`. `undefined` for text. */
  readonly output: string | undefined;
}

interface StreamPart {
  readonly type: string;
  readonly [member: string]: unknown;
}

/** Runs the agent, and ends the turn: completed, failed, or with a question. */
export async function* runAgent(
  turn: Turn,
  agent: AISDKAgent,
  messages: readonly unknown[],
  options: RunOptions,
): AsyncGenerator<AgentEvent, void, void> {
  const call = { messages: messages as never[], abortSignal: turn.signal, ...stopWhenAsked(agent) };
  const result = await agent.stream(call);
  const reader = new Parts(turn, agent, options);
  for await (const part of result.fullStream) yield* reader.read(part);
  turn.signal.throwIfAborted();
  yield* reader.end();
  const { asking, ended, unanswered } = reader;
  const approvals = await Promise.all(reader.approvals.map(approvalOf));
  if (asking.length > 0 || approvals.length > 0) {
    const all = [...messages, ...(await responsesOf(result))];
    return yield asking.length > 0 ? ask(turn, { ...cut(all, asking), approvals }) : suspend(turn, all, approvals);
  }
  if (unanswered.length > 0) return yield failed(turn, `The agent cannot run the tool ${unanswered.join(", ")}`);
  yield* outcome(turn, result, ended, options.output);
}

async function responsesOf({ responseMessages, response }: AISDKResult): Promise<readonly unknown[]> {
  const { messages = [] } = viewOf<{ readonly messages: readonly unknown[] }>(await response);
  return (await responseMessages) ?? messages;
}

async function* outcome(
  turn: Turn,
  result: AISDKResult,
  end: Ended,
  output: string | undefined,
): AsyncGenerator<AgentEvent, void, void> {
  const { reason } = end;
  const metadata = metadataOf(end);
  const fault = faults[reason];
  if (fault !== undefined) return yield failed(turn, fault, metadata);
  if (output !== undefined && reason !== "length") {
    const value = await Promise.resolve(result.output).catch((error: unknown) => {
      turn.logger.error("The model's answer does not match its output schema", { error });
      return undefined;
    });
    if (value === undefined) return yield failed(turn, "The answer does not match the expected schema", metadata);
    yield turn.artifact({ name: "answer", parts: [data(toPlainJson(value))] });
  }
  if (reason === "length" && output !== undefined) yield failed(turn, isCut, metadata);
  else yield* succeeded(turn, reason === "length" ? isCut : undefined, metadata);
}

/** Reads the parts of a stream. */
class Parts {
  readonly approvals: ApprovalRequest[] = [];
  /** Calls that have asked the user. */
  readonly asking: Asking[] = [];
  ended: Ended = { reason: "unknown", usage: {} };
  readonly #turn: Turn;
  readonly #tools: object;
  readonly #options: RunOptions;
  readonly #writers = new Map<string, ArtifactWriter>();
  readonly #sources: Part[] = [];
  /** Calls whose progress is hidden until it is known that they need no approval. */
  readonly #quiet = new Map<string, string>();
  /** Calls without a result. */
  readonly #open = new Map<string, string>();

  constructor(turn: Turn, { tools }: AISDKAgent, options: RunOptions) {
    this.#turn = turn;
    this.#tools = tools ?? {};
    this.#options = options;
  }

  /** Names of tools that were called but never run. */
  get unanswered(): readonly string[] {
    return [...new Set(this.#open.values())];
  }

  *read(part: StreamPart): Generator<AgentEvent, void, void> {
    const { type } = part;
    if (type === "text-start" || type === "text-delta" || type === "text-end") return yield* this.#text(part);
    if (type === "reasoning-delta") return yield* this.#reasoning(part);
    if (type === "tool-approval-request") {
      const { toolCall } = part as unknown as ApprovalRequest;
      this.#quiet.delete(toolCall.toolCallId);
      if (part["isAutomatic"] === true) return;
      this.#open.delete(toolCall.toolCallId);
      return void this.approvals.push(part as unknown as ApprovalRequest);
    }
    for (const [id, name] of this.#quiet) yield* this.#calling(id, name);
    if (type === "tool-call") return yield* this.#call(part);
    if (type === "tool-result" && part["preliminary"] === true) return yield* this.#progress(part);
    if (/^tool-(result|error|output-denied)$/.test(type)) return this.#done(part);
    if (type === "source") return void this.#sources.push(sourceOf(part));
    if (type === "file") return yield this.#file(part);
    if (type === "finish") {
      const { finishReason, totalUsage } = part;
      this.ended = { reason: String(finishReason), usage: (totalUsage ?? {}) as Ended["usage"] };
    }
    if (type === "error") throw part["error"];
  }

  /** Closes open texts and calls. */
  *end(): Generator<AgentEvent, void, void> {
    for (const writer of this.#writers.values()) yield* writer.end();
    if (this.#sources.length > 0) yield this.#turn.artifact({ name: "sources", parts: this.#sources });
  }

  *#text({ type, id, text = "" }: StreamPart): Generator<AgentEvent, void, void> {
    if (this.#options.output !== undefined) return;
    const key = String(id);
    if (type === "text-delta" && text !== "") {
      const delay = this.#options.pieces ? { maxDelay: 0 } : {};
      const writer = this.#writers.get(key) ?? this.#turn.writer({ name: "answer", ...delay });
      this.#writers.set(key, writer);
      yield* writer.write(String(text));
    }
    if (type !== "text-end") return;
    yield* this.#writers.get(key)?.end() ?? [];
    this.#writers.delete(key);
  }

  *#reasoning({ text = "" }: StreamPart): Generator<AgentEvent, void, void> {
    if (this.#options.reasoning && text !== "") yield this.#turn.working(String(text));
  }

  *#call({ toolCallId, toolName, invalid, providerExecuted }: StreamPart): Generator<AgentEvent, void, void> {
    const id = String(toolCallId);
    const name = String(toolName);
    if (invalid === true) return;
    if (providerExecuted !== true) this.#open.set(id, name);
    const tool: unknown = Reflect.get(this.#tools, name);
    const mayAsk =
      typeof tool === "object" && tool !== null && "needsApproval" in tool && tool.needsApproval !== undefined;
    if (mayAsk) this.#quiet.set(id, name);
    else yield* this.#calling(id, name);
  }

  *#calling(id: string, name: string): Generator<AgentEvent, void, void> {
    this.#quiet.delete(id);
    yield this.#turn.working(`Calling ${name.slice(0, 200)}`);
  }

  #done({ toolCallId, toolName, input, error }: StreamPart): void {
    this.#open.delete(String(toolCallId));
    const question = questionOf(error);
    if (question !== undefined)
      this.asking.push({ toolCallId: String(toolCallId), toolName: String(toolName), input, question });
  }

  *#progress({ output }: StreamPart): Generator<AgentEvent, void, void> {
    const shown = typeof output === "string" ? output : JSON.stringify(toPlainJson(output));
    yield this.#turn.working(shown.slice(0, maxProgress));
  }

  #file({ file }: StreamPart): AgentEvent {
    const { base64, mediaType } = file as { readonly base64: string; readonly mediaType: string };
    return this.#turn.artifact({ name: "file", parts: [{ raw: base64, mediaType }] });
  }
}

const maxProgress = 4000;

function sourceOf({ type: _, providerMetadata: __, ...source }: StreamPart): Part {
  return data({ source: toPlainJson(source) });
}
