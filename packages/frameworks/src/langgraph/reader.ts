import { BaseCallbackHandler } from "@langchain/core/callbacks/base";
import { data } from "@parley/a2a/model";
import type { Turn } from "@parley/server";
import { toPlainJson } from "../shared/json.ts";
import { viewOf } from "../shared/view.ts";
import type { Calls } from "./calls.ts";
import type { Feed } from "./feed.ts";

/* Passes texts and progress of a run to its reader. */

/** The members of an agent message that the adapter reads. */
export interface Answer {
  readonly id?: string;
  readonly text?: string;
  readonly usage_metadata?: { readonly input_tokens?: number; readonly output_tokens?: number };
}

/** The agent's messages among the values of a state or an update. */
export function answersIn(values: readonly unknown[]): readonly Answer[] {
  return values.flatMap((value) => [value].flat()).flatMap(answerOf);
}

/** Accepts a message as a class instance or as `{ role, content }`. */
function answerOf(value: unknown): readonly Answer[] {
  if (typeof value !== "object" || value === null) return [];
  const { getType, role, content } = viewOf<Record<"getType" | "role" | "content", unknown>>(value);
  if (typeof getType === "function") return Reflect.apply(getType, value, []) === "ai" ? [value] : [];
  return (role === "ai" || role === "assistant") && typeof content === "string" ? [{ ...value, text: content }] : [];
}

interface Spoken {
  readonly task: string;
  readonly artifactId: string;
  text: string;
  /** Whether its text is hidden, because the run has the tag `nostream` or the text was shown before. */
  isSilent: boolean;
  /** Whether its answer is replayed from the store. */
  isReplayed: boolean;
}

interface Metadata {
  readonly langgraph_checkpoint_ns?: string;
  readonly langgraph_node?: string;
}
/** LangChain's positional arguments. The third is the run id, the eighth the run name. */
type ChainStart = [unknown, unknown, string, string?, string[]?, Metadata?, string?, string?];
type ToolStart = [unknown, string, string, string?, string[]?, Metadata?, string?];
type ModelStart = [unknown, unknown, string, string?, unknown?, string[]?, Metadata?];

/** The id of the LangGraph task that makes a call. The id is the same in each attempt. `run` has the metadata of the call. */
export function taskOf(run: object | undefined): string {
  const { metadata } = viewOf<{ metadata: Metadata }>(run);
  const last = metadata?.langgraph_checkpoint_ns?.split("|").at(-1) ?? "";
  return last.slice(last.indexOf(":") + 1);
}

const hidden = new Set(["nostream", "langsmith:nostream"]);
const maxProgress = 4000;

/** Listens to the models and tools of a run. LangChain passes this handler to each call, and the call finds its turn through the handler. */
export class Reader extends BaseCallbackHandler {
  readonly name = "parley";
  /** Makes models stream even if a node calls `invoke()`. */
  readonly lc_prefer_streaming = true;
  override awaitHandlers = true;
  readonly usage = { input: 0, output: 0 };
  readonly calls: Calls;
  readonly #turn: Turn;
  readonly #feed: Feed;
  readonly #spoken = new Map<string, Spoken>();
  readonly #counts = new Map<string, number>();
  /** Ids of shown messages, and shown texts with their task. */
  readonly #had = new Set<string>();

  constructor(turn: Turn, feed: Feed, calls: Calls) {
    super();
    this.#turn = turn;
    this.#feed = feed;
    this.calls = calls;
  }

  /** Marks the messages in this value, such as a checkpoint, as shown, because they were shown when they were written. */
  had(value: unknown): void {
    const { channel_values: values } = viewOf<{ channel_values: object }>(value);
    for (const { id } of answersIn(values === undefined ? [value] : Object.values(values)))
      if (id !== undefined) this.#had.add(id);
  }

  /** Shows a message that a node wrote, unless a model already streamed it. */
  show({ id, text = "" }: Answer, task: string, artifactId: string): void {
    const isShown = (id !== undefined && this.#had.has(id)) || this.#had.has(`${task} ${text}`);
    if (id !== undefined) this.#had.add(id);
    if (isShown || text === "") return;
    this.#feed.push({ kind: "text", artifactId, text });
    this.#feed.push({ kind: "end", artifactId });
  }

  /** Marks the answer of this run as stored and shown before. */
  replays(runId: string): void {
    const run = this.#spoken.get(runId);
    if (run !== undefined) run.isSilent = run.isReplayed = true;
  }

  /** Marks the answer of this run as complete. */
  ended(runId: string): void {
    const run = this.#spoken.get(runId);
    if (run !== undefined) this.#feed.push({ kind: "end", artifactId: run.artifactId });
  }

  override handleChainStart(...[, , , , , metadata, , name]: ChainStart): void {
    // Handles only the start of a node.
    if (name === undefined || name !== metadata?.langgraph_node) return;
    const task = taskOf({ metadata });
    this.calls.restart(task);
    this.#counts.delete(task);
  }

  override handleChatModelStart(...[, , runId, , , tags, metadata]: ModelStart): void {
    const task = taskOf({ metadata });
    const number = (this.#counts.get(task) ?? 0) + 1;
    this.#counts.set(task, number);
    const isSilent = (tags ?? []).some((tag) => hidden.has(tag));
    this.#spoken.set(runId, { task, artifactId: `${task}-${number}`, text: "", isSilent, isReplayed: false });
  }

  override handleLLMNewToken(token: string, ...[, runId, , , fields]: readonly unknown[]): void {
    const { chunk } = viewOf<{ chunk: { readonly message?: Answer } }>(fields);
    this.#say(String(runId), chunk?.message ?? { text: token });
  }

  override handleLLMEnd(output: unknown, runId: string): void {
    const run = this.#spoken.get(runId);
    if (run === undefined) return;
    const { generations } = viewOf<{ generations: readonly (readonly { message?: Answer }[])[] }>(output);
    const message = generations?.[0]?.[0]?.message ?? {};
    if (run.text === "") this.#say(runId, message);
    this.ended(runId);
    this.#spoken.delete(runId);
    for (const id of [message.id, `run-${runId}`]) if (id !== undefined) this.#had.add(id);
    if (run.isReplayed || !run.isSilent) this.#had.add(`${run.task} ${message.text ?? ""}`);
    if (run.isReplayed) return;
    this.usage.input += message.usage_metadata?.input_tokens ?? 0;
    this.usage.output += message.usage_metadata?.output_tokens ?? 0;
  }

  override handleLLMError(_error: unknown, runId: string): void {
    const run = this.#spoken.get(runId);
    if (run === undefined) return;
    // A retried model call replaces its earlier text.
    this.#counts.set(run.task, (this.#counts.get(run.task) ?? 1) - 1);
    this.ended(runId);
    this.#spoken.delete(runId);
  }

  override handleToolStart(...[, , , , , , name = "a tool"]: ToolStart): void {
    this.progress(`Calling ${name.slice(0, 200)}`);
  }

  override handleToolEvent(chunk: unknown): void {
    this.progress(chunk);
  }

  /** Shows a text, or a value as data, as progress. */
  progress(value: unknown): void {
    const json = toPlainJson(value);
    const text = typeof json === "string" ? json : JSON.stringify(json);
    const isData = typeof json === "object" && text.length <= maxProgress;
    this.#feed.push({
      kind: "event",
      event: this.#turn.working(isData ? [data(json)] : text.slice(0, maxProgress)),
    });
  }

  #say(runId: string, { text = "" }: Answer): void {
    const run = this.#spoken.get(runId);
    if (run === undefined || run.isSilent || text === "") return;
    run.text += text;
    this.#feed.push({ kind: "text", artifactId: run.artifactId, text });
  }
}
