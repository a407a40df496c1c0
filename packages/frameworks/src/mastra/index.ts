/**
 * Mastra agents as durable A2A agents, and A2A agents as Mastra agents.
 * @packageDocumentation
 */
import { defineAgent, type Agent, type Turn } from "@parley/server";
import type { JsonObject, JsonValue } from "@parley/a2a/model";
import { resume } from "../shared/approvals.ts";
import { adapterDefaults, checkDefinition } from "../shared/defaults.ts";
import { messagesOf } from "../shared/messages.ts";
import { checkPeer, installedVersion } from "../shared/peer.ts";
import { checkAgent, forkOf, type Durable } from "./fork.ts";
import { memoryOf, messageOf } from "./memory.ts";
import type { MastraAgent, MastraDefinition, MastraOutput } from "./port.ts";
import { answerIn, ask, problemOf, type Suspended } from "./questions.ts";
import { readRun } from "./run.ts";
import { putRuns } from "./runs.ts";

export { remoteMastraAgent, type RemoteMastraOptions } from "./remote.ts";
export { idempotencyOf } from "./tools.ts";
export type { MastraAgent, MastraDefinition, MastraOutput } from "./port.ts";
export type { ToolStep } from "../shared/results.ts";

/**
 * Turns a Mastra agent into a Parley agent. Model answers and tool results are steps: after a crash the turn resumes without repeating a call whose
 * result was stored. Tools with `requireApproval`, and tools that call `suspend()`, ask the user; the suspended run is stored with the
 * task.
 *
 * @param agent - An `Agent`, with or without a `Mastra` instance.
 * @param definition - Description and behaviour, as for `defineAgent()`. By default `resumable` is true, and data parts are accepted.
 * @returns An agent for `serve()`.
 * @throws Error for a version of `@mastra/core` other than 1, and if `agent` is not a Mastra agent.
 *
 * @example
 * ```ts
 * import { Agent } from "@mastra/core/agent";
 * import { serve } from "@parley/node";
 *
 * const agent = new Agent({ id: "travel", name: "Travel", model: "openai/gpt-5", instructions: "You plan trips." });
 * await serve(fromMastra(agent, { name: "Travel", description: "Plans trips.", version: "1.0.0", skills: [] }));
 * ```
 */
export function fromMastra(agent: MastraAgent, definition: MastraDefinition): Agent {
  checkPeer(
    { adapter: "mastra", name: "@mastra/core", min: 1, below: 2 },
    installedVersion("@mastra/core", import.meta.url),
  );
  checkAgent(agent);
  checkDefinition("fromMastra()", definition, { reasoning: 1, history: 1 });
  const { reasoning = false, history, ...rest } = definition;
  return defineAgent({
    ...adapterDefaults,
    ...rest,
    async *onMessage(turn: Turn) {
      const durable = forkOf(agent, turn);
      const answer = await answerOf(turn, durable);
      if (answer !== undefined && "ask" in answer) {
        yield answer.ask;
        return;
      }
      const { structuredOutput } = await durable.fork.getDefaultOptions();
      const output = answer === undefined ? await begin(turn, durable, history) : await proceed(turn, durable, answer);
      yield* readRun(turn, output, durable, { reasoning, isObject: structuredOutput !== undefined });
    },
  });
}

/** A suspended run in the state of the task. */
interface Loop extends JsonObject {
  readonly runId: string;
  readonly toolCallId: string;
}

/** A suspended run, and the data that resumes it. */
interface Answer {
  readonly loop: Loop;
  readonly resumeData: JsonValue;
}

/** The answer to the question of the task, or the question again if the answer does not fit. `undefined` if nothing is suspended. */
async function answerOf(
  turn: Turn,
  { fork }: Durable,
): Promise<Answer | { readonly ask: ReturnType<typeof ask> } | undefined> {
  const { mastra: loop } = (turn.state() ?? {}) as {
    readonly mastra?: Loop & { readonly suspended?: Suspended; readonly turn: number };
  };
  if (loop?.suspended === undefined) {
    const resumed = resume(turn, "mastra");
    if (resumed === undefined || "ask" in resumed) return resumed;
    return { loop: resumed.loop as Loop, resumeData: { ...resumed.decisions[0] } };
  }
  const { suspended } = loop;
  const answer = answerIn(turn, suspended, loop.turn);
  if (answer === undefined) return { ask: ask(turn, suspended) };
  const { [suspended.toolName]: tool } = await fork.listTools();
  const problem = await problemOf(tool?.resumeSchema, answer.value);
  return problem === undefined ? { loop, resumeData: answer.value } : { ask: ask(turn, suspended, problem) };
}

function optionsOf(turn: Turn, { fork }: Durable): object {
  return {
    ...memoryOf(turn, fork),
    abortSignal: turn.signal,
    // Calls wait for the stored answer anyway. Without eager execution, the order of tool calls is the same in each attempt.
    eagerToolExecution: false,
    // By default Mastra prints errors; a failed task already logs its error.
    onError: () => {},
  };
}

/** Starts a run. An agent with memory remembers the conversation itself. */
async function begin(turn: Turn, durable: Durable, history: MastraDefinition["history"]): Promise<MastraOutput> {
  const { fork } = durable;
  const messages = fork.hasOwnMemory() ? [await messageOf(turn)] : messagesOf(await turn.context.history(history));
  return fork.stream(messages, { ...optionsOf(turn, durable), runId: `parley-${turn.taskId}-${turn.number}` });
}

/** Continues a suspended run. */
async function proceed(turn: Turn, durable: Durable, { loop, resumeData }: Answer): Promise<MastraOutput> {
  await putRuns(durable.mastra, loop);
  const { runId, toolCallId } = loop;
  durable.resumed.add(toolCallId);
  const options = { ...optionsOf(turn, durable), runId, toolCallId };
  return durable.fork.resumeStream(resumeData, options);
}
