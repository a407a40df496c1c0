import type { AgentOutputType, FunctionTool, Handoff, RunContext, Tool } from "@openai/agents";
import { isUnstored, type Gate, type Results, type ToolStep } from "../shared/results.ts";
import type { Models } from "./model.ts";
import { invokeFunctionTool } from "./peer.ts";
import type { AnyAgent } from "./port.ts";

/* The agents of one turn, as the runner sees them. */

type AnyHandoff = Handoff<unknown, AgentOutputType>;
type Details = Parameters<FunctionTool["invoke"]>[2];

const steps = new WeakMap<object, ToolStep>();

/**
 * The step of a tool call: an idempotency key for the service that the tool calls, and whether an earlier attempt may have taken effect.
 *
 * @param details - The third argument of the tool's `execute`.
 * @returns `undefined` outside of a turn, such as in a test of the tool.
 *
 * @example
 * ```ts
 * import { tool } from "@openai/agents";
 * import * as z from "zod";
 *
 * const refund = tool({
 *   name: "refund",
 *   description: "Refunds an order",
 *   parameters: z.object({ order: z.string() }),
 *   execute: ({ order }, _context, details) => `Refund of ${order} under ${idempotencyOf(details)?.key}`,
 * });
 * ```
 */
export function idempotencyOf(details: { readonly toolCall?: object } | undefined): ToolStep | undefined {
  return details?.toolCall === undefined ? undefined : steps.get(details.toolCall);
}

interface TurnDeps {
  readonly models: Models;
  readonly results: Results;
  readonly gate: Gate;
  /** Reports a tool call. */
  readonly called: (name: string) => void;
}

/** Derives agents with durable models and tools, and with handoffs to such agents. The original agents are unchanged prototypes of their copies. */
export class Agents {
  readonly #deps: TurnDeps;
  readonly #made = new WeakMap<object, object>();

  constructor(deps: TurnDeps) {
    this.#deps = deps;
  }

  of(agent: AnyAgent): AnyAgent {
    const known = this.#made.get(agent);
    if (known !== undefined) return known as AnyAgent;
    const made = derived(agent, {
      model: {
        get: () => (typeof agent.model === "object" ? this.#deps.models.of(agent.model) : agent.model),
      },
      handoffs: { get: () => agent.handoffs.map((each) => this.#handoff(each)) },
      getAllTools: {
        value: async (...all: Parameters<AnyAgent["getAllTools"]>) =>
          (await Reflect.apply(agent.getAllTools, made, all)).map((tool: Tool) => this.#tool(tool)),
      },
    });
    this.#made.set(agent, made).set(made, made);
    return made;
  }

  #handoff(handoff: AnyAgent | AnyHandoff): AnyAgent | AnyHandoff {
    if (!("onInvokeHandoff" in handoff)) return this.of(handoff);
    return derived(handoff, {
      agent: { get: () => this.of(handoff.agent) },
      onInvokeHandoff: {
        value: async (...all: Parameters<AnyHandoff["onInvokeHandoff"]>) =>
          this.of(await handoff.onInvokeHandoff(...all)),
      },
    });
  }

  #tool(tool: Tool): Tool {
    if (tool.type !== "function") return tool;
    const invoke: FunctionTool["invoke"] = (context, input, details) => this.#call(tool, context, input, details);
    // The timeout applies inside the step, so a resumed turn has the same result.
    const { timeoutMs: _, ...rest } = tool;
    return { ...rest, invoke };
  }

  async #call(tool: FunctionTool, runContext: RunContext, input: string, details: Details): Promise<unknown> {
    const { results, gate, called } = this.#deps;
    const toolCall = details?.toolCall;
    // For an agent used as a tool, only the end or continuation of the loop shows whether the agent asks a question.
    const isAgent = "on" in tool;
    const run = async (step: ToolStep): Promise<unknown> => {
      called(tool.name);
      if (toolCall !== undefined) steps.set(toolCall, step);
      gate.running += isAgent ? 1 : 0;
      try {
        return await invokeFunctionTool({ tool, runContext, input, ...(details !== undefined && { details }) });
      } finally {
        gate.running -= isAgent ? 1 : 0;
      }
    };
    try {
      return await results.of(toolCall?.callId ?? tool.name, details?.signal, run, isAgent ? gate : undefined);
    } catch (error) {
      if (isUnstored(error)) return error.message;
      throw error;
    }
  }
}

/** An object with `base` as its prototype. */
function derived<Base extends object>(base: Base, own: PropertyDescriptorMap): Base {
  return Object.create(base, own) as Base;
}
