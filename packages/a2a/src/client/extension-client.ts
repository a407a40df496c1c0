import {
  A2AError,
  type AgentCard,
  type AgentExtension,
  hasCode,
  invalidParams,
  type StandardSchema,
  type StreamResponse,
  withFields,
} from "../model/index.ts";
import { declarationOf, type ExtensionReader, fit, methodRoute, misfits, type Readable } from "../extensions/index.ts";
import {
  anonymous,
  type AnyExtension,
  type ExtensionMethods,
  type ExtensionTypes,
  type ExtensionWrites,
  type MethodName,
  type UnaryName,
} from "../protocol/index.ts";
import { bounded } from "../transport/client/signals.ts";
import type { ClientExtensions } from "./extensions.ts";
import { notConnectedWith } from "./required-extensions.ts";
import type { ClientParts } from "./parts.ts";
import type { CallOptions } from "./requests.ts";

/** What `client.ext()` gives: one extension, as it is with the agent of the client. */
export interface ExtensionClient<Types extends ExtensionTypes> extends Omit<ExtensionWrites<Types>, "subState"> {
  /** How the card declares it. `undefined`: it does not. */
  readonly declared: AgentExtension | undefined;
  /** Whether each call asks for it: the card declares it, and what it requires. */
  readonly requested: boolean;
  /** `params` of the card, checked. `undefined` where they do not fit, where there are none, and without `paramsSchema`. */
  readonly params: ParamsOf<Types>;
  /**
   * Reads what the extension has put into an event, a task, a message or an artifact, whether or not it was active: for what was kept,
   * or came in another way.
   */
  read(from: Readable): Types["event"];
  /**
   * Calls a method of the extension.
   *
   * @throws A2AError `InvalidParams` for a request that does not fit, which is not sent, `InvalidResponse` for an answer that does not,
   * `MethodNotFound` where the agent does not have the extension, and what the agent answers.
   */
  call<Name extends keyof Types["methods"] & string>(
    method: Name,
    request: RequestOf<Types["methods"][Name]>,
    options?: CallOptions,
  ): Promise<ResponseOf<Types["methods"][Name]>>;
}

type ParamsOf<Types> = Types extends { readonly params: infer Params } ? Params | undefined : unknown;
type RequestOf<Method> = Method extends { readonly request: StandardSchema<infer Request> } ? Request : never;
type ResponseOf<Method> = Method extends { readonly response: StandardSchema<infer Response> } ? Response : never;

/** What `client.ext()` gives for an extension. */
export type ExtensionClientOf<X> = X extends { readonly "~types"?: infer Types extends ExtensionTypes }
  ? ExtensionClient<Types>
  : never;

/** `client.ext`, of a client with these extensions. */
export type ExtOfClient<E extends AnyExtension> = <X extends E>(extension: X) => ExtensionClientOf<X>;

/** `client.ext` of a client. */
export function extOf(
  readers: readonly ExtensionReader[],
  parts: ClientParts,
  extensions: ClientExtensions,
): ExtOfClient<AnyExtension> {
  return <X extends AnyExtension>(extension: X) => {
    const reader = readers.find((each) => each.extension.uri === extension.uri);
    if (reader === undefined) return notConnectedWith(extension);
    return clientOf(reader, parts, extensions) as unknown as ExtensionClientOf<X>;
  };
}

function clientOf(
  reader: ExtensionReader,
  parts: ClientParts,
  extensions: ClientExtensions,
): ExtensionClient<ExtensionTypes> {
  const { extension } = reader;
  const { metadata, part } = reader.writes();
  return {
    metadata,
    part,
    get declared() {
      return declarationOf(extension.uri, extensions.card);
    },
    get requested() {
      return extensions.uris.includes(extension.uri);
    },
    get params() {
      return extensions.paramsOf(extension);
    },
    read: (from) => extensions.read(reader, eventOf(from)),
    call: (name, request, options = {}) =>
      callMethod(extension, name, request, options, parts).catch((thrown: unknown) => {
        throw explained(thrown, extension, name, extensions.card);
      }) as Promise<never>,
  };
}

/** What is read, as the event that it would come in. */
function eventOf(from: Readable): StreamResponse {
  if ("messageId" in from) return { message: from };
  if ("artifactId" in from) return { artifactUpdate: { taskId: "", contextId: "", artifact: from } };
  return "status" in from ? { task: from } : from;
}

/** An agent without a method says so in other words on each binding. Where its card does not declare the extension, this is why. */
function explained(thrown: unknown, { uri }: AnyExtension, name: string, card: AgentCard): unknown {
  const isUnknown = hasCode(thrown, "MethodNotFound", "UnsupportedOperation");
  if (!isUnknown || declarationOf(uri, card) !== undefined) return thrown;
  const text = `The agent has no method ${name}: its card does not declare the extension ${uri}`;
  return new A2AError("MethodNotFound", text, { cause: thrown });
}

async function callMethod(
  { uri, methods = {} }: AnyExtension,
  name: string,
  request: unknown,
  options: CallOptions,
  parts: ClientParts,
): Promise<unknown> {
  const method = (methods as ExtensionMethods)[name as keyof ExtensionMethods];
  if (method === undefined) throw new TypeError(`The extension ${uri} has no method ${name}`);
  const wrong = misfits(method.request, "request", request);
  if (wrong.length > 0) throw invalidParams(wrong);
  const { extensions = [], trace, timeout = parts.timeout } = options;
  const { signal, release } = bounded(parts.clock, options.signal, timeout, () => "The call");
  const context = {
    principal: anonymous,
    version: parts.chosen().protocolVersion,
    extensions: [...new Set([...parts.extensions, ...extensions])],
    outgoing: { ...options, method: methodRoute(name as MethodName, method) },
    signal,
    trace,
  };
  try {
    const { payload } = await parts.service.call(name as UnaryName, request as never, context);
    const result = fit(method.response, payload.value);
    if (result.ok) return result.value;
    const fields = misfits(method.response, "response", payload.value);
    throw new A2AError("InvalidResponse", withFields(`The answer of ${name} does not fit`, fields), { fields });
  } finally {
    release();
  }
}
