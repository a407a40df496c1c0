import { utf8Length } from "@parley/a2a/internal/base/bytes";
import type { ExtensionHooks } from "@parley/a2a/internal/extensions/hooks";
import { methodsOf, type OwnedMethod } from "@parley/a2a/internal/extensions/methods";
import { A2AError, invalidParams, type Part, type SendMessageRequest } from "@parley/a2a/internal/model/index";
import {
  isAuthorizationAnswer,
  isMethod,
  type CallContext,
  type MethodName,
  type OperationName,
  type Operations,
} from "@parley/a2a/internal/protocol/index";
import { sizeOfValue } from "../shared/bytes.ts";
import type { HostedAgent } from "../shared/options.ts";
import type { EngineSettings } from "../shared/settings.ts";

/* Checks of a call before any work (A2A 1.0 §3.3.4), the same on every binding. */

/** A hosted agent, with the rules of its card that each call must satisfy. */
export interface CheckedAgent extends HostedAgent {
  /** URIs of the extensions that the card declares (A2A 1.0 §4.6). */
  readonly declared: readonly string[];
  /** URIs of extensions that a caller must request. */
  readonly required: readonly string[];
  /** Hooks that select which requested extensions are active. `undefined`: all are active. */
  readonly selecting: ExtensionHooks | undefined;
  /** Media types that the agent reads, without parameters. `text/*` and `*` are patterns. */
  readonly inputModes: readonly string[];
  /** The methods of the declared extensions, by the names of their operations. */
  readonly methods: ReadonlyMap<string, OwnedMethod>;
  /** The request headers that turns of the agent read. */
  readonly reads: readonly DeclaredHeader[];
}

interface DeclaredHeader {
  /** The name of the header, in lower case. */
  readonly name: string;
  readonly store: boolean;
}

/** @throws A2AError `InvalidParams` for `requestHeaders` with forbidden names, and for extensions without the extensions that they require. */
export function checkedAgent(
  hosted: HostedAgent,
  { extensions: hooks }: Pick<EngineSettings, "extensions">,
): CheckedAgent {
  const { capabilities, defaultInputModes, skills } = hosted.card;
  const extensions = (capabilities.extensions ?? []).filter(({ uri }) => uri !== undefined);
  const modes = [...defaultInputModes, ...skills.flatMap((skill) => skill.inputModes ?? [])];
  const declared = extensions.map(({ uri = "" }) => uri);
  const methods = methodsOf(hooks.all.filter(({ uri }) => declared.includes(uri)));
  return {
    ...hosted,
    declared,
    methods: new Map(methods.map((own) => [own.route.name, own])),
    required: extensions.filter(({ required }) => required === true).map(({ uri = "" }) => uri),
    selecting: hooks.selects(hosted.card) ? hooks : undefined,
    inputModes: [...new Set(modes.map(bare))],
    reads: listOf(hosted.agent.requestHeaders ?? [], hosted.card).map((header) => checkedHeader(header, hosted.card)),
  };
}

/**
 * Throws if a call is invalid, before any work. Returns the URIs of its active extensions.
 *
 * @param request - A request of this operation.
 */
export function checkCall(
  hosted: CheckedAgent,
  operation: OperationName,
  request: Operations[OperationName]["request"],
  context: CallContext,
): readonly string[] {
  checkCapability(hosted, operation);
  const method = isMethod(operation) ? methodOf(hosted, operation) : undefined;
  const extensions = activate(hosted, operation, request, context, method?.uri);
  if (operation === "SendMessage" || operation === "SendStreamingMessage") {
    checkMessage(hosted, request as SendMessageRequest);
  }
  return extensions;
}

const needs: { readonly [Name in OperationName]?: "streaming" | "push" | "extendedCard" } = {
  SendStreamingMessage: "streaming",
  SubscribeToTask: "streaming",
  CreateTaskPushNotificationConfig: "push",
  GetTaskPushNotificationConfig: "push",
  ListTaskPushNotificationConfigs: "push",
  DeleteTaskPushNotificationConfig: "push",
  GetExtendedAgentCard: "extendedCard",
};

function checkCapability({ card }: HostedAgent, operation: OperationName): void {
  const { capabilities } = card;
  switch (needs[operation]) {
    case "streaming":
      if (capabilities.streaming !== true) throw new A2AError("UnsupportedOperation", "This agent does not stream");
      return;
    case "push":
      if (capabilities.pushNotifications !== true) throw new A2AError("PushNotificationNotSupported");
      return;
    case "extendedCard":
      if (capabilities.extendedAgentCard !== true) {
        throw new A2AError("UnsupportedOperation", "This agent has no extended card");
      }
      return;
    default:
  }
}

const none: readonly string[] = [];

/** The method of an extension, which the agent must have. */
export function methodOf({ methods }: CheckedAgent, operation: MethodName): OwnedMethod {
  const own = methods.get(operation);
  if (own !== undefined) return own;
  throw new A2AError("MethodNotFound", "This agent does not have the extension of this method");
}

/** Extensions that the caller requests and the card declares (§4.6). A call must request the required extensions and the extension of its method. */
function activate(
  { declared, required, selecting, card }: CheckedAgent,
  operation: OperationName,
  request: Operations[OperationName]["request"],
  context: CallContext,
  needed: string | undefined,
): readonly string[] {
  const { extensions } = context;
  const lacks = (uri: string): boolean => !extensions.includes(uri);
  if (required.some(lacks) || (needed !== undefined && lacks(needed))) {
    const uris = [...new Set([...required, ...(needed === undefined ? [] : [needed])])].filter(lacks).join(", ");
    throw new A2AError("ExtensionSupportRequired", `Required extensions were not requested: ${uris}`, {
      metadata: { extensions: uris },
    });
  }
  if (extensions.length === 0) return none;
  const active = declared.filter((uri) => extensions.includes(uri));
  if (selecting === undefined || active.length === 0) return active;
  const { principal, version, headers } = context;
  const call = { principal, version, ...(headers && { headers }), operation, request, card };
  return selecting.activate(active, call, needed);
}

/** Rejects a message that the agent cannot read, and a webhook if the agent has none. */
function checkMessage({ card, inputModes }: CheckedAgent, request: SendMessageRequest): void {
  if (request.configuration?.taskPushNotificationConfig !== undefined && card.capabilities.pushNotifications !== true) {
    throw new A2AError("PushNotificationNotSupported");
  }
  if (request.message.role !== "ROLE_USER") {
    const fields = [{ field: "message.role", description: "must be ROLE_USER: a client speaks for its user" }];
    throw new A2AError("InvalidParams", undefined, { fields });
  }
  request.message.parts.forEach((part, index) => {
    if (isAuthorizationAnswer(part)) return;
    const mediaType = mediaTypeOf(part);
    if (mediaType === undefined || inputModes.some((mode) => covers(mode, mediaType))) return;
    const field = `message.parts[${index}].mediaType`;
    throw new A2AError("ContentTypeNotSupported", `This agent does not read ${mediaType}`, {
      fields: [{ field, description: `must be one of ${inputModes.join(", ")}` }],
      metadata: { mediaType },
    });
  });
}

/**
 * Rejects a message with too many parts or too much metadata. Other limits apply to the whole request and to the task.
 *
 * @throws A2AError `InvalidParams` that names the field.
 */
export function checkSize(
  { message, metadata }: SendMessageRequest,
  { messageParts, metadataBytes }: Pick<EngineSettings["limits"], "messageParts" | "metadataBytes">,
): void {
  const { parts } = message;
  if (parts.length > messageParts) {
    const description = `has ${parts.length} parts: a message may have ${messageParts}`;
    throw invalidParams([{ field: "message.parts", description }]);
  }
  let bytes = (metadata && sizeOfValue(metadata)) ?? 0;
  if (message.metadata !== undefined) bytes += sizeOfValue(message.metadata);
  for (const part of parts) if (part.metadata !== undefined) bytes += sizeOfValue(part.metadata);
  if (bytes <= metadataBytes) return;
  const field = metadata === undefined ? "message.metadata" : "metadata";
  throw invalidParams([
    { field, description: `is too large: all metadata of a message may take ${metadataBytes} bytes` },
  ]);
}

/** Headers that agents cannot declare, because they contain credentials or belong to A2A. */
const reserved =
  /^(?:authorization|proxy-authorization|cookie2?|set-cookie2?|dpop|last-event-id|(?:x-)?a2a-.*|grpc-.*)$/;

/** Headers as agents declare them. Callers in JavaScript can declare anything. */
type HeaderDeclarations = NonNullable<HostedAgent["agent"]["requestHeaders"]>;

function listOf(headers: HeaderDeclarations, card: HostedAgent["card"]): HeaderDeclarations {
  const isList: boolean = Array.isArray(headers);
  return isList ? headers : refuseHeaders('must be a list, such as ["x-request-id"]', card);
}

function checkedHeader(header: HeaderDeclarations[number], card: HostedAgent["card"]): DeclaredHeader {
  const { securitySchemes = {} } = card;
  const { name: written, store = false } = typeof header === "object" ? (header ?? { name: "" }) : { name: header };
  const name = typeof written === "string" ? written.toLowerCase() : "";
  const isKey = Object.values(securitySchemes).some(
    ({ apiKeySecurityScheme: key }) => key?.location === "header" && key.name.toLowerCase() === name,
  );
  const problem = !/^[\w!#$%&'*+\-.^`|~]+$/.test(name)
    ? "which is not a name of a header (RFC 9110 §5.1)"
    : reserved.test(name) || isKey
      ? "which has credentials or belongs to A2A: read it in an authenticator, an interceptor or `turn.call`"
      : undefined;
  if (problem === undefined) return { name, store };
  return refuseHeaders(`has ${JSON.stringify(written)}, ${problem}`, card);
}

function refuseHeaders(description: string, { name }: HostedAgent["card"]): never {
  const fields = [{ field: "requestHeaders", description }];
  throw invalidParams(fields, `The agent ${JSON.stringify(name)} cannot be served: requestHeaders ${description}`);
}

/** Maximum bytes of the values of a request's declared headers, together. */
const headerBytes = 8 << 10;

/**
 * The declared headers that a request has; `undefined` if the agent declares none.
 *
 * @throws A2AError `RequestTooLarge`.
 */
export function declaredHeaders(
  { reads }: CheckedAgent,
  context: CallContext,
): Readonly<Record<string, string>> | undefined {
  if (reads.length === 0) return undefined;
  const headers: Record<string, string> = Object.create(null) as Record<string, string>;
  let bytes = 0;
  for (const { name } of reads) {
    const value = context.headers?.(name);
    // Other values may come from the prototype of a host's headers object, such as `constructor`.
    if (typeof value !== "string") continue;
    bytes += utf8Length(value);
    headers[name] = value;
  }
  if (bytes <= headerBytes) return headers;
  const names = reads.map(({ name }) => name).join(", ");
  throw new A2AError("RequestTooLarge", `These headers may take ${headerBytes} bytes together: ${names}`);
}

/** The media type of a part, without parameters. A file without one is passed to the agent. */
function mediaTypeOf(part: Part): string | undefined {
  const implied = part.text !== undefined ? "text/plain" : part.data !== undefined ? "application/json" : undefined;
  return part.mediaType === undefined ? implied : bare(part.mediaType);
}

function bare(mediaType: string): string {
  return (mediaType.split(";", 1)[0] ?? "").trim().toLowerCase();
}

function covers(mode: string, mediaType: string): boolean {
  if (mode === mediaType || mode === "*" || mode === "*/*") return true;
  return mode.endsWith("/*") && mediaType.startsWith(mode.slice(0, -1));
}
