import * as core from "@mastra/core";
import * as storage from "@mastra/core/storage";
import type { Turn } from "@parley/server";
import { Budget } from "../shared/budget.ts";
import { durableModels, type AnyModel, type ModelOptions } from "../shared/model.ts";
import type { Fork, LoopTool, MastraAgent } from "./port.ts";
import { durableTools } from "./tools.ts";

/*
 * The agent of one turn is a copy with durable models and tools. Imports are namespaces: with named imports, the module loader would reject a version
 * that lacks a name, without reporting the supported range.
 */

/** The copy, its runs and its tools. */
export interface Durable {
  readonly fork: Fork;
  /** The instance that stores its runs. */
  readonly mastra: core.Mastra;
  /** Tools that need approval before a call. */
  readonly asking: ReadonlySet<string>;
  /** Ids of calls that the user has answered. */
  readonly resumed: Set<string>;
}

const members = ["__fork", "convertTools", "resolveModelConfig", "__registerMastra", "resumeStream"];

/** @throws Error if `agent` is not an `Agent`, or its version lacks a member that the adapter replaces. */
export function checkAgent(agent: MastraAgent): void {
  const missing = members.filter((name) => typeof Reflect.get(Object(agent), name) !== "function");
  if (missing.length === 0) return;
  throw new Error(`fromMastra() needs an Agent of @mastra/core >=1 <2; this one lacks ${missing.join(", ")}`);
}

/** Copies the agent for a turn. An agent without a `Mastra` instance gets one, because runs cannot resume without an instance. */
export function forkOf(agent: MastraAgent, turn: Turn): Durable {
  const { __fork } = agent as unknown as { __fork(): Fork };
  const fork = __fork.call(agent);
  const mastra = fork.getMastraInstance() ?? ownMastra(fork);
  fork.__registerMastra(mastra);
  const budget = new Budget();
  const resumed = new Set<string>();
  const durableTool = durableTools(turn, budget, resumed);
  const durableModel = durableModels(turn, budget);
  const asking = new Set<string>();
  const { convertTools, resolveModelConfig } = fork;
  // Overrides members of the copy only; the class is unchanged.
  fork.convertTools = async (options) => {
    const tools = Object.entries(await convertTools.call(fork, options));
    for (const [name, { requireApproval }] of tools) if (requireApproval === true) asking.add(name);
    const made = tools.map(([name, tool]) => [name, durableTool(tool)]);
    return Object.assign(Object.create(null), Object.fromEntries(made)) as Record<string, LoopTool>;
  };
  fork.resolveModelConfig = async (config, context) =>
    streaming(await resolveModelConfig.call(fork, config, context), durableModel);
  return { fork, mastra, asking, resumed };
}

function ownMastra(fork: Fork): core.Mastra {
  const mastra = new core.Mastra({ storage: new storage.InMemoryStore(), logger: false });
  // An error fails the task, which logs the error. The agent would log it a second time.
  fork.__setLogger?.(mastra.getLogger());
  return mastra;
}

/** The model with a durable `doStream()`, which the loop calls. */
function streaming(model: AnyModel, durableOf: (model: AnyModel) => AnyModel): AnyModel {
  const durable = durableOf(model);
  const doStream: AnyModel["doStream"] = (options) => durable.doStream(withoutTimes(options));
  return new Proxy(model, {
    get(target, name) {
      if (name === "doStream") return doStream;
      const value: unknown = Reflect.get(target, name, target);
      // Calls methods on the model itself, because they may use private members.
      return typeof value === "function" ? (...args: unknown[]): unknown => Reflect.apply(value, target, args) : value;
    },
  });
}

/** Removes the timestamps that Mastra adds to messages, because timestamps would differ in each attempt. */
function withoutTimes({ prompt, ...options }: ModelOptions): ModelOptions {
  return { ...options, prompt: prompt.map((message) => ({ ...withoutTime(message), role: message.role })) };
}

interface Dated {
  readonly role?: string;
  readonly providerOptions?: { readonly mastra?: { readonly createdAt?: unknown } };
  readonly content?: unknown;
}

function withoutTime(given: Dated): object {
  const { providerOptions, content, ...rest } = given;
  const { mastra: { createdAt: _, ...mastra } = {}, ...others } = providerOptions ?? {};
  return {
    ...rest,
    ...(content !== undefined && { content: Array.isArray(content) ? content.map(withoutTime) : content }),
    ...(providerOptions !== undefined && { providerOptions: { ...others, mastra } }),
  };
}
