import { A2AError, hasCode, invalidParams, withFields, type AgentCard, type StreamResponse } from "../model/index.ts";
import { declarationOf, ExtensionReader, fit, methodRoute, misfits, type Readable } from "../extensions/index.ts";
import {
  anonymous,
  type AnyExtension,
  type ExtensionMethods,
  type ExtensionTypes,
  type MethodName,
  type UnaryName,
  type AgentService,
} from "../protocol/index.ts";
import { bounded } from "../transport/client/signals.ts";
import { ClientExtensions } from "./extensions.ts";
import type { ClientParts, ExtensionClient, ExtensionClientOf, ExtOfClient } from "./parts.ts";
import type { CallOptions } from "./requests.ts";
import type { Logger } from "../base/index.ts";

function extOf(
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

/** Wraps a task, message or artifact in an event. */
function eventOf(from: Readable): StreamResponse {
  if ("messageId" in from) return { message: from };
  if ("artifactId" in from) return { artifactUpdate: { taskId: "", contextId: "", artifact: from } };
  return "status" in from ? { task: from } : from;
}

/** Explains the error for a missing method if the card does not declare the extension, because each binding reports this error differently. */
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
    throw new A2AError("InvalidResponse", withFields(`The answer of ${name} is invalid`, fields), { fields });
  } finally {
    release();
  }
}

/** Adds the client's extensions that were passed as values, not as URIs. */
export class Extending {
  /** Extensions that were passed as URIs. */
  readonly uris: readonly string[];
  readonly #readers: readonly ExtensionReader[];
  readonly #logger: Logger;
  #extensions: ClientExtensions | undefined;

  /** @throws A2AError `InvalidParams` for a value that is neither a URI nor an extension, and for two extensions with the same URI. */
  constructor(extensions: readonly (string | AnyExtension)[], logger: Logger) {
    const readers: ExtensionReader[] = [];
    for (const [at, each] of extensions.entries()) {
      if (typeof each === "string") continue;
      const uri: unknown = (each as Partial<AnyExtension> | null | undefined)?.uri;
      const own = typeof uri === "string" && uri !== "" && readers.every(({ extension }) => extension.uri !== uri);
      if (!own) throw invalidParams([{ field: `extensions[${at}]`, description }]);
      readers.push(new ExtensionReader(each, onceEach(uri, logger)));
    }
    this.uris = extensions.filter((each) => typeof each === "string");
    this.#readers = readers;
    this.#logger = logger;
  }

  /** Wraps the service below the retries, so that each attempt is tagged. */
  below(service: AgentService, card: AgentCard): AgentService {
    this.#extensions = new ClientExtensions(this.#readers, card, this.#logger);
    return this.#extensions.tagged(service);
  }

  /** Wraps the complete client, above the retries. */
  above(parts: ClientParts): ClientParts {
    const extensions = this.#extensions;
    const asked = [...this.uris, ...(extensions?.uris ?? [])];
    const service = explainingRequired(parts.service, parts.card, asked);
    if (extensions === undefined) return { ...parts, service };
    const extended = { ...parts, service: extensions.wrapped(service, parts.clock) };
    const received: ClientParts["received"] = (task, uris) => extensions.delivered(task, uris);
    return { ...extended, received, ext: extOf(this.#readers, extended, extensions) };
  }
}

/** Logs only the first dropped value of each field, because an agent may send any number of values. */
function onceEach(uri: string, logger: Logger): (field: string, mistake?: TypeError) => void {
  const told = new Set<string>();
  return (field, mistake) => {
    if (told.has(field)) return;
    told.add(field);
    if (mistake === undefined) {
      logger.warn("Ignored an extension value that does not match its schema", { uri, field });
    } else logger.warn("Ignored an extension value that could not be checked", { uri, field, cause: mistake });
  };
}

const description = "must be a URI, or an extension with a URI, such as defineExtension() makes";

/**
 * Explains `ExtensionSupportRequired` with the extensions that the card requires (A2A 1.0 §4.6.1). Only the server can decide, because the card may
 * be out of date, and some operations need no extension. Returns the service itself if the client requests all required extensions.
 *
 * @param requested - URIs that the client requests.
 */
export function explainingRequired(next: AgentService, card: AgentCard, requested: readonly string[]): AgentService {
  const missing = (card.capabilities.extensions ?? []).flatMap(({ uri, required }) =>
    required === true && uri !== undefined && !requested.includes(uri) ? [uri] : [],
  );
  if (missing.length === 0) return next;
  const explained = (thrown: unknown): never => {
    if (!hasCode(thrown, "ExtensionSupportRequired")) throw thrown;
    const { message, fields, metadata } = thrown;
    const text = `${message}. The card requires ${missing.join(", ")}: request them with connect(url, { extensions: [...] })`;
    throw new A2AError("ExtensionSupportRequired", text, { fields, metadata, cause: thrown });
  };
  return {
    call: (operation, request, context) => next.call(operation, request, context).catch(explained),
    stream: (operation, request, context) => next.stream(operation, request, context).catch(explained),
  };
}

/** `client.ext()` for an extension that the client does not have. */
export function notConnectedWith({ uri }: AnyExtension): never {
  throw new TypeError(
    `The client was connected without the extension ${uri}, or only with its URI: pass its value in connect(url, { extensions: [...] })`,
  );
}
