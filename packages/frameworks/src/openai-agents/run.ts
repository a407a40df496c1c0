import type { RunStreamEvent, StreamedRunResult } from "@openai/agents";
import { data } from "@parley/a2a/model";
import type { AgentEvent, ArtifactWriter, Turn } from "@parley/server";
import { approvalOf, suspend, type Approval } from "../shared/approvals.ts";
import { toJson, toPlainJson } from "../shared/json.ts";
import { succeeded } from "../shared/outcome.ts";
import type { AnyAgent } from "./port.ts";

/* One run of an agent: converts the events of its stream to events of the turn. */

type Result = StreamedRunResult<unknown, AnyAgent>;
type Interruption = Result["interruptions"][number];

interface RunOptions {
  readonly reasoning: boolean;
  /** Whether text is shown only after it passes the guardrails of the run. */
  readonly guarded: boolean;
}

/** An event of the stream, or the name of a tool that is being called. */
type Note = RunStreamEvent | string;

/** Starts a run, which must report each tool call to `called`. */
export type Start = (called: (name: string) => void) => Promise<Result>;

/** Runs an agent, and ends the turn: completed, failed, or with a question. */
export async function* runAgent(turn: Turn, start: Start, options: RunOptions): AsyncGenerator<AgentEvent, void, void> {
  const { readable, writable } = new TransformStream<Note, Note>();
  const writer = writable.getWriter();
  writer.closed.catch(() => {});
  const result = await start((name) => void writer.write(name).catch(() => {}));
  const events = new Events(turn, result.currentAgent, options);
  pump(result, writer);
  try {
    for await (const note of readable) yield* events.read(note);
  } catch (error) {
    turn.signal.throwIfAborted();
    const said = sentences[error instanceof Error ? error.name : ""];
    if (said === undefined) throw error;
    turn.logger.error("The agent stopped", { error });
    yield* events.end();
    return yield turn.failed(said);
  }
  turn.signal.throwIfAborted();
  yield* events.end();
  if (result.interruptions.length > 0) return yield await question(turn, result);
  yield* outcome(turn, result, events.shown);
}

function pump(result: Result, writer: WritableStreamDefaultWriter<Note>): void {
  const pumped = async (): Promise<void> => {
    for await (const event of result) await writer.write(event);
    await result.completed;
    await writer.close();
  };
  pumped()
    .catch((error: unknown) => writer.abort(error))
    .catch(() => {});
}

async function question(turn: Turn, { interruptions, runContext, state }: Result): Promise<AgentEvent> {
  const approvals = await Promise.all(interruptions.map(approvalIn));
  // The context is not stored, because it may hold secrets or values that are not JSON. The next turn creates the context again.
  runContext.context = {};
  return suspend(turn, "openaiAgents", { run: toJson(withoutContext(state.toString())) }, approvals);
}

interface StoredRun {
  readonly context: object;
  /** Runs of agents used as tools, as JSON text. */
  readonly pendingAgentToolRuns?: Readonly<Record<string, string>>;
}

function withoutContext(json: string): StoredRun {
  const run = JSON.parse(json) as StoredRun;
  const pendingAgentToolRuns: Record<string, string> = {};
  for (const [key, inner] of Object.entries(run.pendingAgentToolRuns ?? {}))
    pendingAgentToolRuns[key] = JSON.stringify(withoutContext(inner));
  return { ...run, context: { ...run.context, context: {} }, pendingAgentToolRuns };
}

function approvalIn({ name, arguments: given, rawItem }: Interruption): Promise<Approval> {
  const toolCallId = "callId" in rawItem ? rawItem.callId : (rawItem.id ?? "");
  const input = given === undefined ? rawItem : parsed(given);
  const toolCall = { toolCallId, toolName: name ?? rawItem.type, input };
  return approvalOf({ approvalId: crypto.randomUUID(), toolCall });
}

function parsed(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return json;
  }
}

function* outcome(turn: Turn, { finalOutput, runContext }: Result, shown: string): Generator<AgentEvent, void, void> {
  const { inputTokens, outputTokens } = runContext.usage;
  const metadata = { "gen_ai.usage.input_tokens": inputTokens, "gen_ai.usage.output_tokens": outputTokens };
  const output: unknown = finalOutput;
  if (typeof output !== "string") {
    if (output !== undefined) yield turn.artifact({ name: "answer", parts: [data(toPlainJson(output))] });
  } else if (!shown.endsWith(output)) yield turn.artifact({ name: "answer", parts: [{ text: output }] });
  yield* succeeded(turn, undefined, metadata);
}

/** User-facing texts for SDK errors. The log has the error itself. */
const sentences: Readonly<Record<string, string>> = {
  MaxTurnsExceededError: "The agent exceeded its limit of model calls",
  InputGuardrailTripwireTriggered: "A guardrail rejected the message",
  OutputGuardrailTripwireTriggered: "A guardrail withheld the answer",
  ToolInputGuardrailTripwireTriggered: "A guardrail blocked a tool call",
  ToolOutputGuardrailTripwireTriggered: "A guardrail withheld a tool result",
  ModelRefusalError: "The model refused to answer",
  ModelBehaviorError: "The model gave an answer that the agent cannot use",
};

/** Reads the events of a stream. */
class Events {
  /** The last text that was shown. */
  shown = "";
  readonly #turn: Turn;
  readonly #options: RunOptions;
  #agent: AnyAgent | undefined;
  #writer: ArtifactWriter | undefined;

  constructor(turn: Turn, agent: AnyAgent | undefined, options: RunOptions) {
    this.#turn = turn;
    this.#agent = agent;
    this.#options = options;
  }

  *read(note: Note): Generator<AgentEvent, void, void> {
    if (typeof note === "string") return yield this.#calling(note);
    if (note.type === "agent_updated_stream_event") return void (this.#agent = note.agent);
    if (note.type === "run_item_stream_event") return yield* this.#item(note.item);
    if (note.data.type === "output_text_delta") yield* this.#text(note.data.delta);
    if (note.data.type === "response_done") yield* this.end();
  }

  /** Closes the open text. */
  *end(): Generator<AgentEvent, void, void> {
    yield* this.#writer?.end() ?? [];
    this.#writer = undefined;
  }

  *#text(delta: string): Generator<AgentEvent, void, void> {
    const isGuarded = this.#options.guarded || (this.#agent?.outputGuardrails.length ?? 0) > 0;
    if (isGuarded || this.#agent?.outputType !== "text" || delta === "") return;
    if (this.#writer === undefined) {
      this.#writer = this.#turn.writer({ name: "answer", maxDelay: 0 });
      this.shown = "";
    }
    this.shown += delta;
    yield* this.#writer.write(delta);
  }

  *#item(
    item: Extract<RunStreamEvent, { readonly type: "run_item_stream_event" }>["item"],
  ): Generator<AgentEvent, void, void> {
    // If a tool ends the run, its result is shown.
    if (item.type === "tool_call_output_item") this.shown = "";
    // Reports calls of provider tools only, because the agent's own tools report their calls themselves.
    if (item.type === "tool_call_item" && item.rawItem.type !== "function_call")
      yield this.#calling("name" in item.rawItem ? String(item.rawItem.name) : item.rawItem.type);
    if (item.type === "handoff_output_item")
      yield this.#turn.working(`Handing over to ${item.targetAgent.name.slice(0, 200)}`);
    if (item.type !== "reasoning_item" || !this.#options.reasoning) return;
    const { content, rawContent = [] } = item.rawItem;
    const text = [...content, ...rawContent].map((part) => part.text).join("\n");
    if (text !== "") yield this.#turn.working(text);
  }

  #calling(name: string): AgentEvent {
    return this.#turn.working(`Calling ${name.slice(0, 200)}`);
  }
}
