import { defineAgent } from "@parley/server/internal/agent/index";
import { A2AError, data, partsOf, type Part } from "@parley/a2a/internal/model/index";
import {
  DelegationFailed,
  MessageRefused,
  type Agent,
  type AgentBehaviour,
  type AgentDescription,
  type AgentEvent,
  type AgentYield,
  type Delegated,
  type DelegateClient,
  type DelegateMessage,
  type DelegateOptions,
  type Turn,
} from "@parley/a2a/internal/protocol/index";
import {
  agpErrors,
  agpUri,
  type DelegationIntent,
  delegationMediaType,
  intentMediaType,
  intentPart,
  type IntentPayload,
} from "./shapes.ts";
import { agp, viaKey, type AgpTurn } from "./extension.ts";
import type { AgentGateway } from "./port.ts";

/** Options of `gatewayAgent()`: its card, and the agents at its paths. */
export interface GatewayAgentOptions
  extends Partial<AgentDescription>, Omit<AgentBehaviour, "extensions" | "mayReplyDirectly"> {
  /** Its routes. */
  readonly gateway: AgentGateway;
  /**
   * The agent at a path: a client of `connect()`, best created once at startup. If it is `undefined` or rejects, the
   * next route is tried; without another route the task fails. Paths come from announcers, so do not connect to a path
   * as an address.
   */
  readonly agentAt: (path: string) => DelegateClient | undefined | Promise<DelegateClient | undefined>;
  /**
   * The message for the agent. Default: the parts of the message with the intent; for a part of a delegation only the
   * intent.
   */
  readonly messageFor?: (intent: IntentPayload, path: string) => DelegateMessage;
  /** Options of the delegation, such as which progress and artifacts are passed on. */
  readonly delegate?: Omit<DelegateOptions, "key">;
}

/**
 * An agent that delegates intents to the agents of its routes. It passes on their questions and artifacts, and the
 * caller's answers. A delegation is split, and its parts run concurrently.
 *
 * If the agent of a route is unreachable, or rejects an intent before it begins (`DelegationFailed.untaken`), the next
 * route is tried, up to three. An intent that an agent may have accepted is not sent to another agent.
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

type AnyTurn = Pick<
  Turn,
  "message" | "number" | "logger" | "delegate" | "all" | "completed" | "failed" | "reply" | "artifact"
>;

/** Does not name the path, because clients must not learn it. */
const unreachable = "The agent of this route cannot be reached.";

async function* passOn(
  turn: AnyTurn,
  read: AgpTurn,
  intent: IntentPayload,
  routes: Routes,
): AsyncGenerator<AgentYield, AgentEvent | undefined, void> {
  const done = yield* delegated(turn, read, { at: 0, intent, parts: turn.message.parts }, routes);
  if (done === undefined) return turn.failed(unreachable);
  if (done.message !== undefined) return turn.reply(done.message.parts);
  return turn.completed(done.task?.status.message?.parts);
}

async function* passOnAll(
  turn: AnyTurn,
  read: AgpTurn,
  { sub_intents: intents }: DelegationIntent,
  routes: Routes,
): AsyncGenerator<AgentYield, AgentEvent, void> {
  const calls = intents.map((intent, at) => delegated(turn, read, { at, intent, parts: [intentPart(intent)] }, routes));
  const settled = yield* turn.all(calls, { settled: true });
  const report = intents.map((intent, at) => {
    const outcome = settled[at];
    const isDone = outcome?.status === "fulfilled" && outcome.value !== undefined;
    return [intent.target_capability, isDone ? "SUCCESS" : "FAILED"] as const;
  });
  yield turn.artifact({ name: "delegation", parts: [data(Object.fromEntries(report))] });
  return turn.completed();
}

interface RoutedIntent {
  readonly at: number;
  readonly intent: IntentPayload;
  readonly parts: readonly Part[];
}

/** Tries the routes of an intent, cheapest first. `undefined`: the last route leads to no agent. */
async function* delegated(
  turn: AnyTurn,
  read: AgpTurn,
  { at, intent, parts }: RoutedIntent,
  routes: Routes,
): AsyncGenerator<AgentYield, Delegated | undefined, void> {
  const paths = [read.paths[at] ?? "", ...(read.alternatives[at] ?? [])].filter((path) => path !== "");
  let failure: DelegationFailed | undefined;
  for (const [attempt, path] of paths.entries()) {
    const client = await clientAt(turn, path, routes);
    const message = messageOf(parts, read, intent, path, routes);
    // A repeated turn must find the same delegations, even if an absent agent is back.
    const key = `agp ${turn.number} ${at} ${attempt}`;
    try {
      return yield* turn.delegate(client ?? absent, message, { ...routes.delegate, key });
    } catch (error) {
      if (!(error instanceof DelegationFailed) || !isUntaken(error)) throw error;
      failure = client === undefined ? undefined : error;
      turn.logger.info("Failed to pass an intent to the agent of a route", { path, cause: error });
    }
  }
  if (failure !== undefined) throw failure;
  return undefined;
}

/** Whether no agent has begun. An AGP error counts, too, because the agent was then a gateway that found no route. */
function isUntaken({ untaken, cause }: DelegationFailed): boolean {
  return untaken || Object.values(agpErrors).some((error) => error.is(cause));
}

const notHere = (): Promise<never> => Promise.reject(new A2AError("UnsupportedOperation", unreachable));
const noEvents = (): never => {
  throw new A2AError("UnsupportedOperation", unreachable);
};

/**
 * Stands for an absent agent: the task records that the intent was not sent, so that a repeated turn continues with the next
 * route.
 */
const absent: DelegateClient = {
  card: { name: "The agent of this route", capabilities: {}, supportedInterfaces: [] },
  sendMessage: notHere,
  getTask: notHere,
  listTasks: notHere,
  cancelTask: notHere,
  sendStreamingMessage: noEvents,
  subscribeToTask: noEvents,
};

async function clientAt(turn: AnyTurn, path: string, { agentAt }: Routes): Promise<DelegateClient | undefined> {
  try {
    return await agentAt(path);
  } catch (cause) {
    turn.logger.warn("Failed to reach the agent of a route", { path, cause });
    return undefined;
  }
}

/** The message for the agent, with the names of the gateways on the way. */
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
