import { defineAgent } from "../../agent/index.ts";
import { data, partsOf, type Part } from "../../model/index.ts";
import {
  MessageRefused,
  type Agent,
  type AgentBehaviour,
  type AgentDescription,
  type AgentEvent,
  type AgentYield,
  type DelegateClient,
  type DelegateMessage,
  type DelegateOptions,
  type Turn,
} from "../../protocol/index.ts";
import { agp, viaKey, type AgpTurn } from "./extension.ts";
import { delegationMediaType, intentMediaType, intentPart } from "./parts.ts";
import type { AgentGateway } from "./port.ts";
import { agpUri, type DelegationIntent, type IntentPayload } from "./shapes.ts";

/** Options of `gatewayAgent()`: what its card says, and where paths lead. */
export interface GatewayAgentOptions
  extends Partial<AgentDescription>, Omit<AgentBehaviour, "extensions" | "mayReplyDirectly"> {
  /** Its routes. */
  readonly gateway: AgentGateway;
  /**
   * The agent at a path: a client of `connect()`, best one that is made where the program starts. `undefined`: there is none, and the task fails.
   * A path comes from who has announced it, so do not connect to it as an address.
   */
  readonly agentAt: (path: string) => DelegateClient | undefined | Promise<DelegateClient | undefined>;
  /** What the agent is sent. Default: the parts of the message, with the intent; for a part of a delegation the intent alone. */
  readonly messageFor?: (intent: IntentPayload, path: string) => DelegateMessage;
  /** Options of the delegation, such as what is taken over of progress and artifacts. */
  readonly delegate?: Omit<DelegateOptions, "key">;
}

/**
 * An agent that passes intents on to the agents of its routes: their questions become those of this agent, the answers go down, and artifacts
 * are taken over. A delegation is split, and its parts are done at the same time.
 *
 * @example
 * ```ts
 * const gateway = agentGateway({ name: "Corporate" });
 * const finance = await connect("https://finance.example.com");
 * const agent = gatewayAgent({ gateway, agentAt: (path) => (path === "Finance/gateway" ? finance : undefined) });
 * ```
 */
export function gatewayAgent(options: GatewayAgentOptions): Agent {
  const { gateway, agentAt: _, messageFor: __, delegate: ___, ...rest } = options;
  const extension = agp({ gateway });
  return defineAgent({
    name: gateway.name,
    description: "Routes intents to agents by capability, cost and policy.",
    version: "1.0.0",
    skills: [],
    defaultInputModes: ["application/json", intentMediaType, delegationMediaType, "text/plain"],
    defaultOutputModes: ["*/*"],
    ...rest,
    extensions: [extension],
    async *onMessage(turn) {
      const read = turn.ext(extension);
      if (read?.intent !== undefined) return yield* passOn(turn, read, read.intent, options);
      if (read?.delegation !== undefined) return yield* passOnAll(turn, read, read.delegation, options);
      const description = read === undefined ? `must come with the extension ${agpUri}` : "must hold an intent";
      throw new MessageRefused([{ field: "message.parts", description }]);
    },
  });
}

type Routes = Pick<GatewayAgentOptions, "gateway" | "agentAt" | "messageFor" | "delegate">;

/** A turn, whatever it stores. */
type AnyTurn = Pick<Turn, "message" | "delegate" | "all" | "completed" | "failed" | "reply" | "artifact">;

/** What a client reads where the table names an agent that is not there: paths are not its business. */
const nobody = "The agent of this route cannot be reached.";

async function* passOn(
  turn: AnyTurn,
  read: AgpTurn,
  intent: IntentPayload,
  routes: Routes,
): AsyncGenerator<AgentYield, AgentEvent | undefined, void> {
  const [path = ""] = read.paths;
  const client = await routes.agentAt(path);
  if (client === undefined) return turn.failed(nobody);
  const message = messageOf(turn.message.parts, read, intent, path, routes);
  const done = yield* turn.delegate(client, message, routes.delegate);
  if (done.message !== undefined) return turn.reply(done.message.parts);
  return turn.completed(done.task?.status.message?.parts);
}

async function* passOnAll(
  turn: AnyTurn,
  read: AgpTurn,
  { sub_intents: intents }: DelegationIntent,
  routes: Routes,
): AsyncGenerator<AgentYield, AgentEvent, void> {
  const ways: { readonly intent: IntentPayload; readonly path: string; readonly client: DelegateClient }[] = [];
  for (const [at, intent] of intents.entries()) {
    const path = read.paths[at] ?? "";
    const client = path === "" ? undefined : await routes.agentAt(path);
    if (client !== undefined) ways.push({ intent, path, client });
  }
  const calls = ways.map(({ intent, path, client }) =>
    turn.delegate(client, messageOf([intentPart(intent)], read, intent, path, routes), routes.delegate),
  );
  const settled = yield* turn.all(calls, { settled: true });
  const done = new Set(ways.filter((_, at) => settled[at]?.status === "fulfilled").map(({ intent }) => intent));
  const report = intents.map((intent) => [intent.target_capability, done.has(intent) ? "SUCCESS" : "FAILED"] as const);
  yield turn.artifact({ name: "delegation", parts: [data(Object.fromEntries(report))] });
  return turn.completed();
}

/** What the agent of a route is sent, with the names of the gateways that it came through. */
function messageOf(
  parts: readonly Part[],
  { via }: AgpTurn,
  intent: IntentPayload,
  path: string,
  { gateway, messageFor }: Routes,
): DelegateMessage {
  const given = messageFor?.(intent, path) ?? { parts };
  const init = typeof given === "object" && "parts" in given ? given : { parts: partsOf(given) };
  return { ...init, metadata: { ...init.metadata, [viaKey]: [...via, gateway.name] } };
}
