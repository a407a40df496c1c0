import { createEngine, type Engine, type EngineOptions } from "../engine/index.ts";
import type { AgentCard } from "../model/index.ts";
import { anonymous, type Agent, type AgentService, type CallContext } from "../protocol/index.ts";
import { memoryStore, type Store } from "../store/index.ts";

export interface InProcessOptions extends Partial<Omit<EngineOptions, "agents">> {
  /** What the card should say beyond what the agent does. */
  readonly card?: Partial<AgentCard>;
}

/** An agent without a network: its engine, its service, its store. */
export interface InProcess {
  readonly engine: Engine;
  readonly service: AgentService;
  readonly store: Store;
  readonly card: AgentCard;
}

/** Runs an agent in this process, for tests that ask what it does and not how it travels. */
export function inProcess(agent: Agent, options: InProcessOptions = {}): InProcess {
  const { card: more, store = memoryStore(), ...rest } = options;
  const card: AgentCard = {
    name: agent.name,
    description: agent.description,
    version: agent.version,
    supportedInterfaces: [],
    capabilities: { streaming: true, ...agent.capabilities },
    defaultInputModes: agent.defaultInputModes ?? ["text/plain"],
    defaultOutputModes: agent.defaultOutputModes ?? ["text/plain"],
    skills: agent.skills,
    ...more,
  };
  const engine = createEngine({ ...rest, store, agents: [{ id: "agent", agent, card }] });
  return { engine, service: engine.service("agent"), store, card };
}

/** The context of a call as a test makes it; `subject` names the caller. */
export function callContext(init: Partial<CallContext> & { readonly subject?: string } = {}): CallContext {
  const { subject, ...rest } = init;
  return { principal: subject === undefined ? anonymous : { subject }, version: "1.0", extensions: [], ...rest };
}
