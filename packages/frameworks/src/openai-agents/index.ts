/**
 * OpenAI Agents SDK agents as durable A2A agents.
 * @packageDocumentation
 */
import type {
  Agent as OpenAIAgent,
  AgentOutputType,
  ModelProvider,
  RunConfig,
  RunContext as RunContextType,
  RunState as RunStateType,
} from "@openai/agents";
import { defineAgent, type Agent, type Turn } from "@parley/server";
import { Answers } from "../shared/answers.ts";
import { resume, type Answered } from "../shared/approvals.ts";
import { Budget } from "../shared/budget.ts";
import { adapterDefaults, checkDefinition } from "../shared/defaults.ts";
import { fromJson } from "../shared/json.ts";
import { messagesOf } from "../shared/messages.ts";
import { Gate, Results } from "../shared/results.ts";
import { Agents } from "./agents.ts";
import { itemsOf } from "./items.ts";
import { Models } from "./model.ts";
import { RunContext, Runner, RunState } from "./peer.ts";
import type { AnyAgent, OpenAIAgentDefinition } from "./port.ts";
import { runAgent, type Start } from "./run.ts";

export { idempotencyOf } from "./agents.ts";
export type { OpenAIAgentDefinition } from "./port.ts";
export type { ToolStep } from "../shared/results.ts";

/**
 * Turns an OpenAI Agents SDK agent into a Parley agent. Model answers and function tool results are steps: after a crash the turn resumes without
 * repeating a call whose result was stored. Tools with `needsApproval` ask the user.
 *
 * @param agent - The agent that reads each message. This agent can reach other agents by handoffs.
 * @param definition - Description and behaviour, as for `defineAgent()`. By default `resumable` is true, and data parts are accepted.
 * @returns An agent for `serve()`.
 * @throws Error if `agent` is not an agent. Importing the module throws for a version of `@openai/agents` other than 0.17 to 0.20.
 *
 * @example
 * ```ts
 * import { Agent } from "@openai/agents";
 * import { serve } from "@parley/node";
 *
 * const agent = new Agent({ name: "Travel", instructions: "You plan trips." });
 * await serve(fromOpenAIAgent(agent, { name: "Travel", description: "Plans trips.", version: "1.0.0", skills: [] }));
 * ```
 */
export function fromOpenAIAgent<Context, Output extends AgentOutputType>(
  agent: OpenAIAgent<Context, Output>,
  definition: OpenAIAgentDefinition<Context>,
): Agent {
  return served(checked(agent), definition);
}

function served(agent: AnyAgent, definition: OpenAIAgentDefinition): Agent {
  const own = { reasoning: 1, history: 1, maxTurns: 1, runConfig: 1, context: 1 } as const;
  checkDefinition("fromOpenAIAgent()", definition, own);
  const { reasoning = false, history, maxTurns, runConfig = {}, context, ...rest } = definition;
  const guarded = (runConfig.outputGuardrails ?? []).length > 0;
  return defineAgent({
    ...adapterDefaults,
    ...rest,
    async *onMessage(turn: Turn) {
      const resumed = resume(turn, "openaiAgents");
      if (resumed !== undefined && "ask" in resumed) {
        yield resumed.ask;
        return;
      }
      const gate = new Gate();
      const start: Start = async (called) => {
        const budget = new Budget();
        const models = new Models(turn, new Answers(turn, budget), gate);
        const made = new Agents({ models, results: new Results(turn, budget), gate, called }).of(agent);
        const runContext = new RunContext(context?.(turn));
        const input =
          resumed === undefined
            ? itemsOf(messagesOf(await turn.context.history(history)))
            : await continued(made, resumed, runContext);
        const options = { stream: true, signal: turn.signal, context: runContext } as const;
        return runnerOf(runConfig, models).run(made, input, {
          ...options,
          ...(maxTurns !== undefined && { maxTurns }),
        });
      };
      try {
        yield* runAgent(turn, start, { reasoning, guarded });
      } finally {
        gate.close();
      }
    },
  });
}

function checked(agent: object): AnyAgent {
  const { getAllTools, handoffs } = (agent ?? {}) as Partial<AnyAgent>;
  if (typeof getAllTools === "function" && Array.isArray(handoffs)) return agent as AnyAgent;
  throw new Error("fromOpenAIAgent() needs an Agent of @openai/agents >=0.17 <0.21");
}

function runnerOf(config: Partial<RunConfig>, models: Models): InstanceType<typeof Runner> {
  // A runner without a provider uses the SDK's default, which resolves names to OpenAI models.
  const provider: ModelProvider = config.modelProvider ?? new Runner().config.modelProvider;
  const { model, tracingDisabled = true, toolNotFoundBehavior = "return_error_to_model" } = config;
  return new Runner({
    ...config,
    tracingDisabled,
    toolNotFoundBehavior,
    modelProvider: models.provider(provider),
    ...(typeof model === "object" && { model: models.of(model) }),
  });
}

/** Restores the stored run, and applies the decisions. */
async function continued(
  agent: AnyAgent,
  { loop, approvals, decisions }: Answered,
  context: RunContextType,
): Promise<RunStateType<unknown, AnyAgent>> {
  const json = JSON.stringify(fromJson(loop["run"]));
  const state = await RunState.fromStringWithContext<unknown, AnyAgent>(agent, json, context);
  const items = state.getInterruptions();
  for (const [at, { toolCallId }] of approvals.entries()) {
    const item = items[at];
    const decision = decisions[at];
    if (item === undefined || decision === undefined) throw new Error(`The stored run lacks the call ${toolCallId}`);
    const { approved, reason } = decision;
    if (approved) state.approve(item);
    else state.reject(item, reason === undefined ? {} : { message: reason });
  }
  return state;
}
