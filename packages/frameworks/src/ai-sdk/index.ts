/**
 * AI SDK agents as durable A2A agents, and A2A agents as AI SDK agents and tools.
 * @packageDocumentation
 */
import { defineAgent, type Agent, type Turn } from "@parley/server";
import { Budget } from "../shared/budget.ts";
import { adapterDefaults } from "../shared/defaults.ts";
import { messagesOf } from "../shared/messages.ts";
import { resume } from "./approvals.ts";
import { durableModels } from "./model.ts";
import type { AISDKAgent, AISDKAgentFactory, AISDKDefinition, Durable } from "./port.ts";
import { aiSDK } from "./peer.ts";
import { viewOf } from "../shared/view.ts";
import { runAgent } from "./run.ts";
import { durableTools } from "./tools.ts";

export {
  a2aTool,
  remoteAgent,
  type RemoteAgent,
  type RemoteAgentOptions,
  type RemoteToolInput,
  type RemoteToolOutput,
} from "./remote.ts";
export { idempotencyOf } from "./tools.ts";
export type {
  AISDKAgent,
  AISDKAgentFactory,
  AISDKCall,
  AISDKDefinition,
  AISDKResult,
  Durable,
  DurableModel,
} from "./port.ts";
export type { ToolStep } from "../shared/results.ts";

/**
 * Turns an AI SDK agent into a Parley agent. Model answers and tool results are steps: after a crash the turn resumes without repeating a call whose
 * result was stored. Tools with `needsApproval` ask the user.
 *
 * @param agent - A `ToolLoopAgent`. For other agents, a function that creates one for each turn, with durable models and tools.
 * @param definition - Description and behaviour, as for `defineAgent()`. By default `resumable` is true, and data parts are accepted.
 * @returns An agent for `serve()`.
 * @throws Error for a version of `ai` other than 6 and 7, and if `agent` is neither an agent nor a function.
 *
 * @example
 * ```ts
 * import { serve } from "@parley/node";
 * import { ToolLoopAgent } from "ai";
 *
 * const agent = new ToolLoopAgent({ model: "openai/gpt-5", instructions: "You plan trips." });
 * await serve(fromAISDK(agent, { name: "Travel", description: "Plans trips.", version: "1.0.0", skills: [] }));
 * ```
 */
export function fromAISDK(agent: AISDKAgent | AISDKAgentFactory, definition: AISDKDefinition): Agent {
  aiSDK();
  const make = typeof agent === "function" ? agent : loopFactory(agent);
  const { reasoning = false, history, ...rest } = definition;
  return defineAgent({
    ...adapterDefaults,
    ...rest,
    async *onMessage(turn: Turn) {
      const resumed = resume(turn);
      if (resumed !== undefined && "ask" in resumed) {
        yield resumed.ask;
        return;
      }
      const messages = resumed?.messages ?? messagesOf(await turn.context.history(history));
      const durable = new DurableTurn(turn);
      const made = await make(durable, turn);
      checkAgent(made);
      const output = outputOf(made);
      // `hasModel` is known only after the factory has run.
      yield* runAgent(turn, made, messages, { reasoning, pieces: durable.hasModel, output });
    },
  });
}

class DurableTurn implements Durable {
  hasModel = false;
  readonly tools: Durable["tools"];
  readonly #model: Durable["model"];

  constructor(turn: Turn) {
    const budget = new Budget();
    this.tools = durableTools(turn, budget);
    this.#model = durableModels(turn, budget);
  }

  readonly model: Durable["model"] = (model) => {
    this.hasModel = true;
    return this.#model(model);
  };
}

function checkAgent(agent: unknown): void {
  const { version, stream } = viewOf<{ readonly version: unknown; readonly stream: unknown }>(agent);
  if (version === "agent-v1" && typeof stream === "function") return;
  const found = version === undefined ? "no agent" : `an agent with version ${JSON.stringify(version)}`;
  throw new Error(
    `fromAISDK() needs an agent of ai >=6 <8, such as new ToolLoopAgent({ … }), or a function that returns one; found ${found}`,
  );
}

/** Members of a `ToolLoopAgent`'s settings that the adapter replaces. */
interface LoopSettings {
  readonly model: Parameters<Durable["model"]>[0];
  readonly tools?: object;
  readonly output?: { readonly name?: string };
  readonly prepareStep?: (options: object) => unknown;
  readonly onError?: unknown;
  readonly [name: string]: unknown;
}

/** `settings` is private in TypeScript, and the same in versions 6 and 7. */
function settingsOf(agent: AISDKAgent): LoopSettings | undefined {
  const { settings } = agent as unknown as { readonly settings?: LoopSettings };
  return typeof settings === "object" && settings !== null && settings.model !== undefined ? settings : undefined;
}

/** The mode of an agent's output. `undefined` for text, or if unknown. */
function outputOf(agent: AISDKAgent): string | undefined {
  const name = settingsOf(agent)?.output?.name;
  return name === "text" ? undefined : name;
}

/** Recreates a `ToolLoopAgent` for each turn, with durable models and tools. */
function loopFactory(agent: AISDKAgent): AISDKAgentFactory {
  checkAgent(agent);
  const settings = settingsOf(agent);
  if (settings === undefined) {
    throw new Error(
      "fromAISDK() cannot read the settings of this agent; pass a function: fromAISDK((durable) => new MyAgent({ model: durable.model(model), tools: durable.tools(tools) }), …)",
    );
  }
  // By default the AI SDK prints errors; a failed task already logs its error.
  const { model, tools, prepareStep, prepareCall, onError = () => {} } = settings;
  const Loop = agent.constructor as new (settings: object) => AISDKAgent;
  return (durable) => {
    const wrap = (found: unknown): unknown => withDurable(found, durable);
    return new Loop({
      ...settings,
      onError,
      model: durable.model(model),
      ...(tools !== undefined && { tools: durable.tools(tools) }),
      ...(prepareStep !== undefined && { prepareStep: async (step: object) => wrap(await prepareStep(step)) }),
      ...(typeof prepareCall === "function" && {
        prepareCall: async (call: object) => wrap(await Reflect.apply(prepareCall, undefined, [call])),
      }),
    });
  };
}

/** The result of `prepareStep` or `prepareCall`, with its model and tools made durable. */
function withDurable(found: unknown, durable: Durable): unknown {
  const { model, tools } = viewOf<LoopSettings>(found);
  return {
    ...(found as object | undefined),
    ...(model !== undefined && { model: durable.model(model) }),
    ...(tools !== undefined && { tools: durable.tools(tools) }),
  };
}
