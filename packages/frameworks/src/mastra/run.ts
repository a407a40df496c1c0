import { data, type JsonValue, type Part } from "@parley/a2a/model";
import type { AgentEvent, ArtifactWriter, Turn } from "@parley/server";
import { approvalOf, suspend } from "../shared/approvals.ts";
import { toPlainJson } from "../shared/json.ts";
import { failed, faults, isCut, metadataOf, succeeded, type Ended } from "../shared/outcome.ts";
import type { Durable } from "./fork.ts";
import type { MastraOutput } from "./port.ts";
import { ask, suspendedOf, type SuspendedPayload } from "./questions.ts";
import { takeRuns } from "./runs.ts";

/* One run of an agent: converts the chunks of its stream to events of the turn. */

interface RunOptions {
  readonly reasoning: boolean;
  /** Whether the answer is data. Its text is then hidden. */
  readonly isObject: boolean;
}

interface Chunk {
  readonly type: string;
  readonly payload?: Readonly<Record<string, unknown>>;
  readonly object?: unknown;
}

/** Reads a run to the end, and ends the turn: completed, failed, or with a question. */
export async function* readRun(
  turn: Turn,
  output: MastraOutput,
  durable: Durable,
  options: RunOptions,
): AsyncGenerator<AgentEvent, void, void> {
  const reader = new Chunks(turn, durable, options);
  for await (const chunk of { [Symbol.asyncIterator]: () => output.fullStream[Symbol.asyncIterator]() })
    yield* reader.read(chunk);
  turn.signal.throwIfAborted();
  yield* reader.end();
  const { question, unanswered, refused } = reader;
  if (question !== undefined) return yield await asked(turn, durable, output.runId, question);
  if (refused !== undefined) return yield failed(turn, refused);
  if (unanswered.length > 0) return yield failed(turn, `The agent cannot run the tool ${unanswered.join(", ")}`);
  yield* outcome(turn, reader, options);
}

/** Moves the suspended run into the state of the task, and asks the question. */
async function asked(turn: Turn, { mastra }: Durable, runId: string, question: Question): Promise<AgentEvent> {
  const { toolCallId, toolName, args } = question.chunk;
  const loop = { ...(await takeRuns(mastra, runId)), runId, toolCallId };
  // Includes the turn, because models may reuse the id of a call, but a turn asks only once.
  const id = `${runId} ${turn.number} ${toolCallId}`;
  if (question.isApproval) {
    const approval = await approvalOf({ approvalId: id, toolCall: { toolCallId, toolName, input: args } });
    return suspend(turn, "mastra", loop, [approval]);
  }
  const suspended = await suspendedOf(id, question.chunk);
  turn.setState({ mastra: { ...loop, suspended: { ...suspended }, turn: turn.number } });
  return ask(turn, suspended);
}

function* outcome(turn: Turn, { ended: end, object }: Chunks, options: RunOptions): Generator<AgentEvent, void, void> {
  const metadata = metadataOf(end);
  const fault = faults[end.reason];
  if (fault !== undefined) return yield failed(turn, fault, metadata);
  const said = end.reason === "length" ? isCut : undefined;
  if (options.isObject && object === undefined)
    return yield failed(turn, said ?? "The answer does not match the expected schema", metadata);
  if (object !== undefined) yield turn.artifact({ name: "answer", parts: [data(object)] });
  yield* succeeded(turn, said, metadata);
}

/** A tool call that waits for a person. */
interface Question {
  readonly isApproval: boolean;
  readonly chunk: SuspendedPayload;
}

const maxProgress = 4000;

/** Reads the chunks of a stream. */
class Chunks {
  question: Question | undefined;
  ended: Ended = { reason: "unknown", usage: {} };
  /** The structured output. */
  object: JsonValue | undefined;
  /** Why a processor stopped the run. */
  refused: string | undefined;
  readonly #turn: Turn;
  readonly #asking: ReadonlySet<string>;
  readonly #options: RunOptions;
  readonly #writers = new Map<string, ArtifactWriter>();
  readonly #sources: Part[] = [];
  /** Calls without a result. */
  readonly #open = new Map<string, string>();

  constructor(turn: Turn, { asking }: Durable, options: RunOptions) {
    this.#turn = turn;
    this.#asking = asking;
    this.#options = options;
  }

  /** Names of tools that were called but never run. */
  get unanswered(): readonly string[] {
    return [...new Set(this.#open.values())];
  }

  *read({ type, payload = {}, object }: Chunk): Generator<AgentEvent, void, void> {
    if (type === "text-delta" || type === "text-end") return yield* this.#text(type, payload);
    if (type === "reasoning-delta") return yield* this.#reasoning(payload);
    if (type === "tool-call") return yield* this.#call(payload);
    if (type === "tool-output") return yield* this.#progress(payload);
    if (type === "tool-call-approval" || type === "tool-call-suspended") return this.#ask(type, payload);
    if (/^tool-(result|error|output-denied)$/.test(type)) return void this.#open.delete(String(payload["toolCallId"]));
    if (type === "source") return void this.#sources.push(data({ source: toPlainJson(sourceOf(payload)) }));
    if (type === "file") return yield this.#file(payload);
    if (type === "object-result") this.object = toPlainJson(object);
    if (type === "finish") this.#finish(payload);
    if (type === "tripwire") this.#refuse(payload);
    if (type === "error") throw payload["error"];
  }

  /** Closes open texts. */
  *end(): Generator<AgentEvent, void, void> {
    for (const writer of this.#writers.values()) yield* writer.end();
    if (this.#sources.length > 0) yield this.#turn.artifact({ name: "sources", parts: this.#sources });
  }

  *#text(type: string, { id, text = "" }: Record<string, unknown>): Generator<AgentEvent, void, void> {
    if (this.#options.isObject) return;
    const key = String(id);
    if (type === "text-delta" && text !== "") {
      // A replay repeats the text pieces exactly, so each piece is a chunk.
      const writer = this.#writers.get(key) ?? this.#turn.writer({ name: "answer", maxDelay: 0 });
      this.#writers.set(key, writer);
      yield* writer.write(String(text));
    }
    if (type !== "text-end") return;
    yield* this.#writers.get(key)?.end() ?? [];
    this.#writers.delete(key);
  }

  *#reasoning({ text = "" }: Record<string, unknown>): Generator<AgentEvent, void, void> {
    if (this.#options.reasoning && text !== "") yield this.#turn.working(String(text));
  }

  *#call({ toolCallId, toolName, providerExecuted }: Record<string, unknown>): Generator<AgentEvent, void, void> {
    const name = String(toolName);
    if (providerExecuted !== true) this.#open.set(String(toolCallId), name);
    if (!this.#asking.has(name)) yield this.#turn.working(`Calling ${name.slice(0, 200)}`);
  }

  #ask(type: string, payload: Record<string, unknown>): void {
    const { toolCallId, toolName } = payload;
    const chunk = { ...payload, toolCallId: String(toolCallId), toolName: String(toolName) };
    this.question ??= { isApproval: type === "tool-call-approval", chunk };
  }

  /** Shows what a tool writes while it runs. Hides chunks of another agent, whose text is the result. */
  *#progress({ output }: Record<string, unknown>): Generator<AgentEvent, void, void> {
    if (typeof output === "object" && output !== null && "payload" in output) return;
    const shown = typeof output === "string" ? output : JSON.stringify(toPlainJson(output));
    yield this.#turn.working(shown.slice(0, maxProgress));
  }

  #file({ data: bytes, base64 = bytes, mimeType, mediaType = mimeType }: Record<string, unknown>): AgentEvent {
    return this.#turn.artifact({ name: "file", parts: [{ raw: String(base64), mediaType: String(mediaType) }] });
  }

  #refuse({ reason }: Record<string, unknown>): void {
    this.refused = typeof reason === "string" ? reason : "A processor stopped the agent";
  }

  #finish(payload: Record<string, unknown>): void {
    const { stepResult, output } = payload as {
      readonly stepResult?: { readonly reason?: string };
      readonly output?: { readonly usage?: Ended["usage"] };
    };
    this.ended = { reason: String(stepResult?.reason), usage: output?.usage ?? {} };
  }
}

function sourceOf({ providerMetadata: _, ...source }: Record<string, unknown>): object {
  return source;
}
