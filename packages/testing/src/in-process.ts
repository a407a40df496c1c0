import { createEngine, type Engine, type EngineOptions } from "@parley/server/internal/engine/index";
import { declarationsOf } from "@parley/a2a/internal/extensions/activation";
import type { AgentCard } from "@parley/a2a/internal/model/index";
import { type Agent, type AgentService, anonymous, type CallContext } from "@parley/a2a/internal/protocol/index";
import { memoryStore, type Store } from "@parley/server/internal/store/index";
import { createHandler } from "@parley/server/internal/handler";
import type { FetchLike } from "@parley/a2a/internal/transport/client/binding";
import { jsonRpcBinding as jsonRpcClient } from "@parley/a2a/internal/transport/jsonrpc/client";
import { jsonRpcBinding as jsonRpcServer } from "@parley/a2a/internal/transport/jsonrpc/handler";
import { restBinding as restClient } from "@parley/a2a/internal/transport/rest/client";
import { restBinding as restServer } from "@parley/a2a/internal/transport/rest/handler";
import type { ServerBinding } from "@parley/a2a/internal/transport/server/binding";
import { wires } from "@parley/a2a/internal/wires";
import type { ExtensionContractBinding } from "./extension/given.ts";

/** Options of `inProcess()`: the engine's options, and overrides of the card. */
export interface InProcessOptions extends Partial<Omit<EngineOptions, "agents">> {
  /** Members that override the card derived from the agent. */
  readonly card?: Partial<AgentCard>;
}

/** An agent that runs without a network. */
export interface InProcess {
  /** The engine. Close it at the end of the test. */
  readonly engine: Engine;
  /** Calls the agent. */
  readonly service: AgentService;
  /** The store of its tasks. */
  readonly store: Store;
  /** Its card. */
  readonly card: AgentCard;
}

/**
 * Runs the engine with one agent in this process, without a handler, a client or JSON: for tests of stores, extensions
 * and interceptors. Test agents with `testAgent()`.
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

/** A call context. `subject` names the caller; without it the caller is anonymous. */
export function callContext(init: Partial<CallContext> & { readonly subject?: string } = {}): CallContext {
  const { subject, ...rest } = init;
  return { principal: subject === undefined ? anonymous : { subject }, version: "1.0", extensions: [], ...rest };
}

/** JSON-RPC and REST in this process. */
export function localBindings(): readonly ExtensionContractBinding[] {
  const codecs = Object.values(wires);
  const serving =
    (binding: () => ServerBinding): ExtensionContractBinding["serve"] =>
    (agent, options) => {
      const publicUrl = "http://agents.example";
      const handler = createHandler(agent, { ...options, store: memoryStore(), publicUrl, bindings: [binding()] });
      const fetch: FetchLike = (url, init) => handler.fetch(new Request(url, init));
      return Promise.resolve({
        cards: handler.agents.map(({ card }) => card),
        fetch,
        close: () => handler.close({ grace: 0 }),
      });
    };
  return [
    { serve: serving(jsonRpcServer), client: jsonRpcClient(codecs) },
    { serve: serving(restServer), client: restClient(codecs) },
  ];
}
