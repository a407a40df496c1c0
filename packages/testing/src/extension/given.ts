import { defineAgent } from "@parley/server/internal/agent/index";
import type { Logger } from "@parley/a2a/internal/base/index";
import type { Client, ConnectOptions, SendInput } from "@parley/a2a/internal/client/index";
import {
  A2AError,
  type AgentCard,
  type Message,
  type SendMessageRequest,
  type SendMessageResponse,
  type StreamResponse,
  type Task,
} from "@parley/a2a/internal/model/index";
import {
  type Agent,
  type AnyExtension,
  type ExtensionMethods,
  type Interceptor,
  mapItems,
} from "@parley/a2a/internal/protocol/index";
import type { HandlerOptions } from "@parley/server/internal/server/options";
import { cardOf, connectTo, type ContractServer } from "../binding/given.ts";
import type { ClientBinding } from "@parley/a2a/internal/transport/client/binding";
import type { Expect, Expectation } from "../runner.ts";

/* Helpers for the cases of the extension contract. */

/** Server options of a case. */
export type ExtensionServerOptions = Pick<HandlerOptions, "extensions" | "authenticator" | "logger" | "observer">;

/** The data that a client with the extension received. */
export interface ExtensionContractSeen<X extends AnyExtension> {
  /** Compares with the runner's `expect`. */
  expect(this: void, actual: unknown): Expectation;
  /** The client. */
  readonly client: Client<X>;
  /** The events of its stream. */
  readonly events: readonly Awaited<ReturnType<ReturnType<Client<X>["sendStreamingMessage"]>["next"]>>["value"][];
  /** The answer to its unary send. */
  readonly answer: Awaited<ReturnType<Client<X>["sendMessage"]>>;
}

/** Serves and calls agents over a binding. */
export interface ExtensionContractBinding {
  /** Serves an agent with the server's side of the binding. The options go to `createHandler` or `serve` unchanged. */
  readonly serve: (agent: Agent, options: ExtensionServerOptions) => Promise<ContractServer>;
  /** The client's side. */
  readonly client: ClientBinding;
  /** Versions to speak. Default: `1.0` and `0.3`. */
  readonly versions?: readonly string[];
}

/** Options of `extensionContract()`. */
export interface ExtensionContractOptions<X extends AnyExtension> {
  /** The extension. */
  readonly extension: X;
  /** The extensions that it requires. Default: none. */
  readonly required?: readonly AnyExtension[];
  /**
   * Creates an agent that uses the extension if active, and also answers without it. Default: an agent that echoes the
   * text of the message as an artifact.
   */
  readonly agent?: () => Agent;
  /** A message of a client that has (`active`) or lacks the extension. Default: a text. */
  readonly message?: (active: boolean) => SendInput;
  /**
   * Checks what a client with the extension received for that message, and throws if something is missing. Default: no
   * check.
   */
  readonly check?: (seen: ExtensionContractSeen<X>) => void | Promise<void>;
  /** A valid request for each of its methods. */
  readonly requests?: Readonly<Record<string, unknown>>;
  /** Bindings to test. Default: JSON-RPC and REST, without a network. */
  readonly over?: readonly ExtensionContractBinding[];
}

export type ExtensionCase = (suite: ExtensionSuite, expect: Expect) => Promise<void>;
export type ExtensionCases = Readonly<Record<string, ExtensionCase>>;

interface Line {
  readonly level: "warn" | "error";
  readonly message: string;
}

type Options = ExtensionContractOptions<AnyExtension>;

/** One case: its servers and clients. */
export class ExtensionSuite {
  readonly extension: AnyExtension;
  /** The extensions that it requires. */
  readonly required: readonly AnyExtension[];
  /** Warnings and errors of servers and clients. */
  readonly lines: Line[] = [];
  readonly logger: Logger;
  readonly options: Options;
  /** The calls of its clients, with the requested and activated extensions. */
  readonly calls: {
    readonly operation: string;
    readonly asked: readonly string[];
    readonly activated: readonly string[];
  }[] = [];
  /** The received JSON of events. */
  readonly came: string[] = [];
  readonly #binding: ExtensionContractBinding;
  readonly #version: string;
  readonly #servers: ContractServer[] = [];

  constructor(options: Options, binding: ExtensionContractBinding, version: string) {
    this.options = options;
    this.extension = options.extension;
    this.required = options.required ?? [];
    this.#binding = binding;
    this.#version = version;
    const line =
      (level: Line["level"]) =>
      (message: string): void =>
        void this.lines.push({ level, message });
    this.logger = { debug() {}, info() {}, warn: line("warn"), error: line("error") };
  }

  /** URIs to request. */
  get uris(): readonly string[] {
    return [this.extension, ...this.required].map(({ uri }) => uri);
  }

  /** Serves the agent, by default with the extension but without requiring it. */
  async serve(
    extensions: readonly AnyExtension[] = [this.optional(), ...this.required],
    more: Pick<ExtensionServerOptions, "authenticator"> = {},
  ): Promise<ContractServer> {
    const server = await this.#binding.serve(this.agent(), { extensions, logger: this.logger, ...more });
    this.#servers.push(server);
    return server;
  }

  /** The extension as optional. */
  optional(more: Partial<AnyExtension> = {}): AnyExtension {
    return { ...this.extension, required: false, ...more };
  }

  /** The contract's agent, without its extension declarations. */
  agent(): Agent {
    const { extensions: _, ...agent } = (this.options.agent ?? saying)();
    return agent;
  }

  /** A message of a client with or without the extension. */
  message(active: boolean): SendInput {
    return this.options.message?.(active) ?? "Hello";
  }

  /** A request with that message. */
  request(active: boolean): SendMessageRequest {
    const input = this.message(active);
    const init = typeof input === "object" && "message" in input ? input : { message: input };
    const { message } = init;
    const parts =
      typeof message === "string" ? [{ text: message }] : "parts" in message ? message.parts : [message].flat();
    const more = typeof message === "object" && "parts" in message ? message : {};
    const own = { ...more, messageId: crypto.randomUUID(), role: "ROLE_USER", parts } as const;
    return { ...init, message: own };
  }

  /** A client with these extensions. */
  connect<E extends string | AnyExtension = string>(
    server: ContractServer,
    extensions: readonly E[] = [],
    { card, ...more }: ConnectOptions<E> & { readonly card?: AgentCard | undefined } = {},
  ): Promise<Client<Extract<E, AnyExtension>>> {
    const { fetch } = server;
    return connectTo(this.#binding.client, card ?? cardOf(server), {
      version: this.#version,
      ...(fetch && { fetch }),
      logger: this.logger,
      retry: false,
      extensions,
      ...more,
      interceptors: [this.#recording(), ...(more.interceptors ?? [])],
    });
  }

  #recording(): Interceptor {
    const record = (operation: string, asked: readonly string[], activated: readonly string[] = []): void =>
      void this.calls.push({ operation, asked, activated });
    const came = (json: string): void => void this.came.push(json);
    return (next) => ({
      async call(operation, request, context) {
        const reply = await next.call(operation, request, context);
        record(operation, context.extensions, reply.extensions);
        return reply;
      },
      async stream(operation, request, context) {
        const reply = await next.stream(operation, request, context);
        record(operation, context.extensions, reply.extensions);
        const batches = mapItems(reply.batches, (item) => {
          came(item.payload.json);
          return item;
        });
        return { ...reply, batches };
      },
    });
  }

  /** Required URIs that are absent from `uris`. */
  missing(uris: readonly string[]): readonly string[] {
    return this.uris.filter((uri) => !uris.includes(uri));
  }

  /** Required URIs that are in `uris`. */
  active(uris: readonly string[]): readonly string[] {
    return this.uris.filter((uri) => uris.includes(uri));
  }

  /** A client with the extension and its requirements. */
  extended(
    server: ContractServer,
    more: Pick<ConnectOptions<AnyExtension>, "headers"> = {},
  ): Promise<Client<AnyExtension>> {
    return this.connect<AnyExtension>(server, [this.extension, ...this.required], more);
  }

  /** Calls a method of the extension with the request in the options. */
  method(client: Client<AnyExtension>, name: string): Promise<unknown> {
    const { requests = {} } = this.options;
    if (!Object.hasOwn(requests, name)) throw new TypeError(`requests must have a request for ${name}`);
    const own: unknown = client.ext(this.extension);
    if (!isCalling(own)) throw new TypeError(`${this.extension.uri} has no methods`);
    return own.call(name, requests[name]);
  }

  /** Stops the servers. */
  async close(): Promise<void> {
    for (const server of this.#servers) await server.close();
  }
}

/** The methods of an extension, by their names. */
export function methodsOf(extension: AnyExtension): ExtensionMethods {
  return (extension as { readonly methods?: ExtensionMethods }).methods ?? {};
}

function isCalling(own: unknown): own is { call(name: string, request: unknown): Promise<unknown> } {
  return typeof own === "object" && own !== null && "call" in own;
}

function saying(): Agent {
  return defineAgent({
    name: "Saying",
    description: "Says what it was told",
    version: "1.0.0",
    skills: [],
    defaultInputModes: ["*/*"],
    async *onMessage(turn) {
      yield turn.working("Working");
      yield turn.artifact({ name: "said", parts: [{ text: turn.text }] });
    },
  });
}

export async function eventsOf<T>(stream: AsyncIterable<T>): Promise<readonly T[]> {
  const events: T[] = [];
  for await (const event of stream) events.push(event);
  return events;
}

/** The error of a rejected call, if any. */
export async function refusal(work: Promise<unknown>): Promise<A2AError | undefined> {
  try {
    await work;
    return undefined;
  } catch (thrown) {
    if (thrown instanceof A2AError) return thrown;
    throw thrown;
  }
}

/** JSON with ids and times replaced by stable names. */
export function plainJson(value: readonly (StreamResponse | SendMessageResponse | Task | Message)[]): unknown {
  const names = new Map<string, string>();
  const stable = (text: string): string => {
    // Times are not numbered: their equality depends on the speed of the server.
    if (/^\d{4}-\d\d-\d\dT[\d:.]+Z$/.test(text)) return "time";
    if (!/[\da-f]{8}-?[\da-f]{4}-?[\da-f]{4}/i.test(text)) return text;
    const name = names.get(text) ?? `#${names.size}`;
    names.set(text, name);
    return name;
  };
  return JSON.parse(JSON.stringify(value), (_, each: unknown) => (typeof each === "string" ? stable(each) : each));
}

/** The code of a send's error, the state of its task, or `message` for a direct reply. */
export async function outcomeOf(work: Promise<SendMessageResponse>): Promise<string> {
  let answer: SendMessageResponse | undefined;
  const error = await refusal(work.then((given) => void (answer = given)));
  return error?.code ?? answer?.task?.status.state ?? "message";
}
