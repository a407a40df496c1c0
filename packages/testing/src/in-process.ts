import { createEngine, type Engine, type EngineOptions } from "@parley/server/internal/engine/index";
import { declarationsOf } from "@parley/a2a/internal/extensions/activation";
import type { AgentCard } from "@parley/a2a/internal/model/index";
import { anonymous, type Agent, type AgentService, type CallContext } from "@parley/a2a/internal/protocol/index";
import { memoryStore, type Store } from "@parley/server/internal/store/index";

/** Options of `inProcess()`: those of the engine, and more of the card. */
export interface InProcessOptions extends Partial<Omit<EngineOptions, "agents">> {
  /** Members of the card that differ from what the agent says. */
  readonly card?: Partial<AgentCard>;
}

/** An agent that runs without a network. */
export interface InProcess {
  /** The engine. Close it at the end of the test. */
  readonly engine: Engine;
  /** Calls the agent. */
  readonly service: AgentService;
  /** Where its tasks are. */
  readonly store: Store;
  /** Its card. */
  readonly card: AgentCard;
}

/**
 * Runs the engine with one agent in this process: the port of the operations alone, without a handler, a client or JSON. It is for tests
 * of stores, extensions and interceptors. Agents are tested by `testAgent()`.
 *
 * @example
 * ```ts
 * const { engine, service } = inProcess(agent);
 * const request = { message: message("Hello") };
 * const reply = await service.call("SendMessage", request, callContext({ subject: "ada" }));
 * await engine.close();
 * ```
 */
export function inProcess(agent: Agent, options: InProcessOptions = {}): InProcess {
  const { card: more, store = memoryStore(), ...rest } = options;
  const declared = declarationsOf(new Set([...(agent.extensions ?? []), ...(rest.extensions ?? [])]));
  const card: AgentCard = {
    name: agent.name,
    description: agent.description,
    version: agent.version,
    supportedInterfaces: [],
    capabilities: {
      streaming: true,
      ...(rest.push !== undefined && { pushNotifications: true }),
      ...agent.capabilities,
      ...(declared.length > 0 && { extensions: [...(agent.capabilities?.extensions ?? []), ...declared] }),
    },
    defaultInputModes: agent.defaultInputModes ?? ["text/plain"],
    defaultOutputModes: agent.defaultOutputModes ?? ["text/plain"],
    skills: agent.skills,
    ...more,
  };
  const engine = createEngine({ ...rest, store, agents: [{ id: "agent", agent, card }] });
  engine.start();
  return { engine, service: engine.service("agent"), store, card };
}

/** A call context for tests. `subject` names the caller; without it the caller is anonymous. */
export function callContext(init: Partial<CallContext> & { readonly subject?: string } = {}): CallContext {
  const { subject, ...rest } = init;
  return { principal: subject === undefined ? anonymous : { subject }, version: "1.0", extensions: [], ...rest };
}
