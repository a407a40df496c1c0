import { defineAgent } from "@parley/server/internal/agent/index";
import { systemClock } from "@parley/a2a/internal/base/index";
import { type Client, connectWith, type ConnectOptions } from "@parley/a2a/internal/client/index";
import {
  A2AError,
  type AgentCard,
  type AgentInterface,
  type SendMessageRequest,
  type StreamResponse,
  type Task,
} from "@parley/a2a/internal/model/index";
import {
  anonymous,
  type Agent,
  type AgentService,
  type AnyExtension,
  type CallContext,
  type Interceptor,
  type OperationName,
  type StreamItem,
  type StreamName,
  type StreamOperations,
  type StreamReply,
  type Turn,
  type UnaryName,
  type UnaryOperations,
} from "@parley/a2a/internal/protocol/index";
import type { AgentMount, HandlerOptions } from "@parley/server/internal/server/options";
import type { ClientBinding, ClientHost, ClientLimits, FetchLike } from "@parley/a2a/internal/transport/client/binding";
import type { Expect } from "../runner.ts";

/** Helpers for the cases of the binding contract. */

/** Server options of a case. */
export interface ContractServerOptions extends Pick<
  HandlerOptions,
  "authenticator" | "interceptors" | "limits" | "allowedHosts" | "cors"
> {
  /** Versions of the protocol to speak. Default: all. */
  readonly versions?: readonly ("1.0" | "0.3")[];
}

/** A running server. */
export interface ContractServer {
  /** The cards of its agents, in the given order. */
  readonly cards: readonly AgentCard[];
  /** Sends HTTP requests to it. Default: the runtime's `fetch`. */
  readonly fetch?: FetchLike;
  /** Stops the server. */
  close(): Promise<void>;
}

export interface ContractGiven {
  /** Serves agents for the duration of the case. */
  serve(setup?: ContractSetup): Promise<Served>;
  readonly expect: Expect;
}

export interface ContractSetup {
  /** Default: an agent that obeys its message. */
  readonly agents?: Agent | readonly AgentMount[];
  readonly options?: ContractServerOptions;
  readonly headers?: Readonly<Record<string, string>>;
  readonly limits?: Partial<ClientLimits>;
}

export type ContractCase = (given: ContractGiven) => Promise<void>;
export type ContractCases = Readonly<Record<string, ContractCase>>;

/** Served agents, and clients for them. */
export class Served {
  readonly version: string;
  readonly #client: ClientBinding;
  readonly #server: ContractServer;
  readonly #host: ClientHost;

  constructor(client: ClientBinding, version: string, server: ContractServer, { headers = {}, limits }: ContractSetup) {
    this.version = version;
    this.#client = client;
    this.#server = server;
    const most = 64 * 2 ** 20;
    this.#host = {
      fetch: this.fetch,
      headers,
      clock: systemClock,
      limits: { connectTimeout: 30_000, idleTimeout: 30_000, maxResponseBytes: most, maxEventBytes: most, ...limits },
    };
  }

  get fetch(): FetchLike {
    return this.#server.fetch ?? ((url, init) => fetch(url, init));
  }

  /** The interface of the agent at an index. Default of `version`: the version of the suite. */
  target(at = 0, version: string = this.version): AgentInterface {
    const card = cardOf(this.#server, at);
    const own = card.supportedInterfaces.filter(({ protocolBinding }) => protocolBinding === this.#client.name);
    // Cards do not list drafts: use the interface of the version that the draft extends.
    const found = own.find(({ protocolVersion }) => protocolVersion.split(".")[0] === version.split(".")[0]);
    if (found !== undefined) return { ...found, protocolVersion: version };
    const otherwise = version === this.version ? "" : '. If the binding does not speak it, pass without: ["version"]';
    throw new Error(
      `The card of ${card.name} has no interface of ${this.#client.name} in version ${version}${otherwise}`,
    );
  }

  /** The service behind an interface. `host`: overrides for its client. */
  service(target: AgentInterface = this.target(), host: Partial<ClientHost> = {}): AgentService {
    return this.#client.open(target, this.version, { ...this.#host, ...host }, cardOf(this.#server));
  }

  context(more: Partial<CallContext> = {}): CallContext {
    return { principal: anonymous, version: this.version, extensions: [], ...more };
  }

  /** Calls an operation of the first agent, and returns its result. */
  async call<Name extends UnaryName>(
    operation: Name,
    request: UnaryOperations[Name]["request"],
    more?: Partial<CallContext>,
  ): Promise<UnaryOperations[Name]["response"]> {
    const { payload } = await this.service().call(operation, request, this.context(more));
    return payload.value;
  }

  stream<Name extends StreamName>(
    operation: Name,
    request: StreamOperations[Name]["request"],
    more?: Partial<CallContext>,
  ): Promise<StreamReply> {
    return this.service().stream(operation, request, this.context(more));
  }
}

/** The card of an agent, by its index. */
export function cardOf({ cards }: ContractServer, at = 0): AgentCard {
  const card = cards[at];
  if (card === undefined) throw new Error(`No agent is served at ${at}`);
  return card;
}

/** A client of an agent, without discovery. */
export function connectTo<E extends string | AnyExtension = string>(
  binding: ClientBinding,
  card: AgentCard,
  options: Omit<ConnectOptions<E>, "binding">,
): Promise<Client<Extract<E, AnyExtension>>> {
  return connectWith({ bindings: [binding], decodeCard: (value: unknown) => value as AgentCard }, card, {
    ...options,
    binding: binding.name,
  });
}

/** The first text of the message that a request sends. */
export function textIn(request: unknown): string {
  return (sendsMessage(request) && request.message.parts[0]?.text) || "";
}

export function sendsMessage(request: unknown): request is SendMessageRequest {
  return typeof request === "object" && request !== null && "message" in request;
}

/** A message to the agent. */
export function saying(text: string, more: object = {}): UnaryOperations["SendMessage"]["request"] {
  return { message: { messageId: crypto.randomUUID(), role: "ROLE_USER", parts: [{ text }], ...more } };
}

/** The error that a promise rejects with. */
export async function errorOf(work: Promise<unknown>): Promise<A2AError> {
  try {
    await work;
  } catch (thrown) {
    if (thrown instanceof A2AError) return thrown;
    throw thrown;
  }
  throw new Error("Expected an error");
}

/** All items of a stream. */
export async function itemsOf({ batches }: StreamReply): Promise<readonly StreamItem[]> {
  const items: StreamItem[] = [];
  for await (const batch of batches) items.push(...batch);
  return items;
}

export async function eventsOf(reply: StreamReply | Promise<StreamReply>): Promise<readonly StreamResponse[]> {
  return (await itemsOf(await reply)).map(({ payload }) => payload.value);
}

/** Texts of all artifacts of a task. */
export function textsOf({ artifacts = [] }: Pick<Task, "artifacts">): readonly (string | undefined)[] {
  return artifacts.flatMap(({ parts }) => parts.map(({ text }) => text));
}

/** Texts of a stream, including the texts of its first task. */
export function chunksIn(events: readonly StreamResponse[]): readonly (string | undefined)[] {
  return events.flatMap(({ task, artifactUpdate }) =>
    task === undefined
      ? textsOf({ artifacts: artifactUpdate === undefined ? [] : [artifactUpdate.artifact] })
      : textsOf(task),
  );
}

/** The final state of a stream. */
export function lastState(events: readonly StreamResponse[]): string | undefined {
  const last = events.at(-1);
  return (last?.statusUpdate?.status ?? last?.task?.status)?.state;
}

/** A promise that the case resolves. */
export function signal(): { readonly given: Promise<void>; give(): void } {
  let give!: () => void;
  const given = new Promise<void>((resolve) => (give = resolve));
  return { given, give };
}

/** Waits for a condition until the test times out. */
export async function until(is: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await is())) await new Promise((resolve) => setTimeout(resolve, 1));
}

/** Runs before each call, and may throw. */
export function before(run: (operation: OperationName, context: CallContext, request: unknown) => void): Interceptor {
  return (next) => ({
    async call(operation, request, context) {
      run(operation, context, request);
      return next.call(operation, request, context);
    },
    async stream(operation, request, context) {
      run(operation, context, request);
      return next.stream(operation, request, context);
    },
  });
}

/**
 * An agent that obeys the first word of its message: `reply` directly, `chunks 50` as a task with 50 chunks, `large
 * 300000` as a task with an artifact of that many characters, `ask` for input, `throw`, `wait` until released or
 * canceled.
 */
export function obedient(go: Promise<void> = new Promise(() => {}), name = "Obedient"): Agent {
  return defineAgent({
    name,
    description: "Does what its message says",
    version: "1.0.0",
    skills: [],
    defaultInputModes: ["*/*"],
    async *onMessage(turn) {
      const [what, count = "3"] = turn.text.split(" ");
      if (what === "reply") return turn.reply(`${name}: ${turn.text}`);
      if (what === "throw") throw new Error("the password is secret");
      if (what === "ask") {
        yield turn.inputRequired("Which one?");
        return undefined;
      }
      yield* tasks(turn, what, Number(count));
      if (what === "wait") {
        await Promise.race([go, new Promise((resolve) => turn.signal.addEventListener("abort", resolve))]);
      }
      return undefined;
    },
  });
}

async function* tasks(turn: Turn, what: string | undefined, count: number) {
  yield turn.working("begun");
  if (what === "large") {
    yield turn.artifact({ artifactId: "large", parts: [{ text: "ä".repeat(count) }] });
    return;
  }
  yield turn.artifact({ artifactId: "a", parts: [{ text: "0" }], open: true });
  for (let at = 1; at < count; at++) yield turn.append("a", [{ text: String(at) }]);
}
