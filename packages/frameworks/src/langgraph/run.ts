import { data, type JsonObject, type JsonValue } from "@parley/a2a/model";
import type { AgentEvent, AgentYield, ArtifactWriter, Turn } from "@parley/server";
import { isObject, toPlainJson } from "../shared/json.ts";
import { succeeded } from "../shared/outcome.ts";
import { viewOf } from "../shared/view.ts";
import { Calls } from "./calls.ts";
import { Feed, type Item } from "./feed.ts";
import type { CompiledGraph, LangGraphDefinition } from "./port.ts";
import { ask, type Interrupt, type Resumed } from "./questions.ts";
import { Command } from "./peer.ts";
import { Reader } from "./reader.ts";
import { TaskSaver } from "./saver.ts";
import { Thread, type StoredThread } from "./thread.ts";

/* One run of a graph. Converts texts and progress to events of the turn, and graph checkpoints to checkpoints of the turn. */

type Values = Readonly<Record<string, unknown>>;

/** The starting point of a run. */
export interface Start {
  /** The thread before this turn. */
  readonly thread: StoredThread | undefined;
  /** Answers to interrupts. `undefined` if the turn has new input. */
  readonly answers?: Resumed;
}

interface RunOptions {
  readonly output: LangGraphDefinition["output"] | undefined;
  readonly config: LangGraphDefinition["config"] | undefined;
  readonly updates: boolean;
}

/** Runs the graph, and ends the turn: completed, failed, or with a question. */
export async function* runGraph(
  turn: Turn,
  graph: CompiledGraph,
  start: Start,
  { output, config, updates }: RunOptions,
  inputOf: (isNew: boolean) => Promise<object>,
): AsyncGenerator<AgentYield, void, void> {
  const { langGraph: saved } = viewOf<{ langGraph: StoredThread }>(turn.checkpoint);
  const thread = new Thread(saved ?? start.thread);
  const begun = new Thread(start.thread).find("")?.id;
  const newest = thread.find("")?.id;
  const feed = new Feed();
  const saver = new TaskSaver(thread, feed);
  const reader = new Reader(turn, feed, new Calls(turn, thread, saver, feed));
  await saver.begin(reader);
  // A resumed run with a newer checkpoint already has its input.
  const isBegun = newest !== begun;
  const input = isBegun
    ? null
    : start.answers === undefined
      ? await inputOf(newest === undefined)
      : commandOf(start.answers);
  const own = copyOf(graph, saver);
  const given: { readonly configurable?: object; readonly callbacks?: readonly unknown[] } = config?.(turn) ?? {};
  const options = {
    ...given,
    configurable: { ...given.configurable, thread_id: turn.contextId },
    callbacks: [...(given.callbacks ?? []), reader],
    signal: turn.signal,
  };
  const modes = { ...options, durability: "sync", streamMode: updates ? ["custom", "updates"] : ["custom"] };
  const running = pump(own, input, modes, reader).then(
    () => feed.end(),
    (error: unknown) => feed.end(error),
  );
  // A node may ignore the signal.
  const abort = (): void => feed.end(turn.signal.reason);
  turn.signal.addEventListener("abort", abort);
  let invalid = false;
  try {
    yield* read(turn, feed, thread);
  } catch (error) {
    turn.signal.throwIfAborted();
    if (isNamed(error, "GraphRecursionError")) {
      turn.setState(undefined);
      return yield turn.failed("The graph exceeded its step limit");
    }
    invalid = isInvalidResume(error);
    if (!invalid) throw error;
  } finally {
    turn.signal.removeEventListener("abort", abort);
    feed.stop();
  }
  await running;
  turn.signal.throwIfAborted();
  if (!invalid) saver.settle();
  yield* outcome(turn, own, thread, saver, reader, options, output);
}

function commandOf(answers: Resumed): InstanceType<typeof Command> | null {
  return answers === null ? null : new Command({ resume: answers });
}

/** The graph, with another checkpointer. */
function copyOf(graph: CompiledGraph, checkpointer: TaskSaver): CompiledGraph {
  return Object.assign(graph.withConfig({}), { checkpointer });
}

async function pump(graph: CompiledGraph, input: unknown, options: object, reader: Reader): Promise<void> {
  for await (const chunk of await graph.stream(input, options)) {
    const pair: readonly unknown[] = Array.isArray(chunk) ? chunk : [];
    const [mode, value] = pair;
    if (mode === "custom" || !("__interrupt__" in viewOf(value))) reader.progress(value);
  }
}

/** Yields the output of the graph, and stores each checkpoint after the output before it. */
async function* read(turn: Turn, feed: Feed, thread: Thread): AsyncGenerator<AgentYield, void, void> {
  const writers = new Map<string, ArtifactWriter>();
  for await (const items of feed) {
    const events: AgentEvent[] = [];
    const saves: ((error?: Error) => void)[] = [];
    for (const item of items) {
      if (item.kind === "save") {
        item.apply();
        saves.push(item.stored);
      } else events.push(...eventsOf(turn, item, writers));
    }
    if (saves.length > 0) events.push(turn.saveCheckpoint({ langGraph: thread.toJson() }));
    if (events.length > 0) yield events;
    if (saves.length === 0) continue;
    const all = (error?: Error): void => saves.forEach((stored) => stored(error));
    turn.flush().then(() => all(), all);
  }
  for (const writer of writers.values()) yield [...writer.end()];
}

function eventsOf(
  turn: Turn,
  item: Exclude<Item, { kind: "save" }>,
  writers: Map<string, ArtifactWriter>,
): readonly AgentEvent[] {
  if (item.kind === "event") return [item.event];
  const { artifactId } = item;
  if (item.kind === "text") {
    const writer = writers.get(artifactId) ?? turn.writer({ artifactId, name: "answer" });
    writers.set(artifactId, writer);
    return writer.write(item.text);
  }
  const last = writers.get(artifactId)?.end() ?? [];
  writers.delete(artifactId);
  return last;
}

async function* outcome(
  turn: Turn,
  graph: CompiledGraph,
  thread: Thread,
  saver: TaskSaver,
  reader: Reader,
  options: object,
  output: RunOptions["output"],
): AsyncGenerator<AgentYield, void, void> {
  const { values, next } = await graph.getState(options);
  const interrupts = (await Promise.all(thread.interrupts().map((typed) => saver.read(typed)))).flat();
  const asked = interrupts.map(interruptOf);
  const [node] = next;
  if (asked.length > 0) return yield await ask(turn, thread.toJson(), asked);
  if (node !== undefined) {
    const value = `Continue with ${next.join(", ")}?`;
    const breakpoint = { id: thread.find("")?.id ?? "", value, schema: { type: "boolean" }, isBreakpoint: true };
    return yield await ask(turn, thread.toJson(), [breakpoint]);
  }
  const own: Values = viewOf<Values>(values);
  const answer = output === undefined ? outputOf(graph, own) : output(own);
  if (answer !== undefined) {
    const parts = typeof answer === "string" ? [{ text: answer }] : [answer].flat();
    yield turn.artifact({ name: "answer", parts });
  }
  const { input, output: out } = reader.usage;
  const metadata: JsonObject = {
    ...(input > 0 && { "gen_ai.usage.input_tokens": input }),
    ...(out > 0 && { "gen_ai.usage.output_tokens": out }),
  };
  // The next task of this context continues from here.
  yield* succeeded(turn, undefined, metadata, () => turn.context.setState({ langGraph: thread.toJson() }));
}

/** The output of a graph without messages. If there are messages, their texts are the answer. */
function outputOf(graph: CompiledGraph, values: Values): ReturnType<typeof data>[] | undefined {
  if ("messages" in graph.channels) return undefined;
  const names = [graph.outputChannels].flat().map(String);
  const shown = names
    .filter((name) => values[name] !== undefined)
    .map((name): [string, unknown] => [name, values[name]]);
  const given = Object.hasOwn(graph.channels, "__root__") ? values : Object.fromEntries(shown);
  return [data(toPlainJson(given))];
}

function interruptOf(given: unknown): Interrupt {
  const { id, value, response_schema: schema } = viewOf<Record<"id" | "value" | "response_schema", unknown>>(given);
  const json: JsonValue = toPlainJson(value);
  const form = toPlainJson(schema);
  return { id: String(id), value: json, ...(isObject(form) && { schema: form }) };
}

function isNamed(error: unknown, name: string): boolean {
  return error instanceof Error && error.name === name;
}

/** Whether the schema of an interrupt rejected its answer. */
function isInvalidResume(error: unknown): boolean {
  let current = error;
  for (let depth = 0; depth < 10 && current instanceof Error; depth += 1, current = current.cause)
    if (Symbol.for("langgraph.invalid_resume") in current) return true;
  return false;
}
