import type { Json } from "../acts/format.ts";
import { firstOf, isList, isMap } from "../acts/values.ts";

/** The first deviation of a value from its shape. */
export interface ShapeProblem {
  readonly path: string;
  readonly expected: string;
  readonly value: unknown;
}

interface Field {
  readonly name: string;
  readonly type: string;
  readonly required: boolean;
  /** `T[]`: a list. `T[1+]`: a list that is not empty. `T{}`: an object with any keys. */
  readonly many: string;
}

interface Shape {
  readonly fields: readonly Field[];
  /** Exactly one of these members must be set. */
  readonly oneOf?: readonly string[];
  /** The shape that replaces this one, by the value of `kind`. */
  readonly byKind?: Readonly<Record<string, string>>;
  /** The version's prefix of shape names. */
  readonly prefix: string;
}

/**
 * Shapes by name, as text: `id: nonEmpty, name?: text, parts: Part[1+]`. An initial `oneof(…)` lists members of which exactly one must be
 * set. `kind(…)` lists shapes by the value of `kind`. A type is a scalar, a shape, or strings separated by `|`.
 */
type ShapeTable = Readonly<Record<string, string>>;

/** Shapes that the protos of 1.0 and 0.3 share. */
const sharedShapes = {
  Artifact: `artifactId: nonEmpty, name?: text, description?: text, parts: Part[1+], metadata?: object, extensions?: text[]`,
  TaskArtifactUpdateEvent: `
    taskId: nonEmpty, contextId: nonEmpty, artifact: Artifact, append?: flag, lastChunk?: flag, metadata?: object`,
  SendMessageResponse: `oneof(task?: Task, message?: Message)`,
  StreamResponse: `oneof(
    task?: Task, message?: Message, statusUpdate?: TaskStatusUpdateEvent, artifactUpdate?: TaskArtifactUpdateEvent)`,
} satisfies ShapeTable;

const states = [
  "SUBMITTED",
  "WORKING",
  "COMPLETED",
  "FAILED",
  "CANCELED",
  "INPUT_REQUIRED",
  "REJECTED",
  "AUTH_REQUIRED",
]
  .map((name) => `TASK_STATE_${name}`)
  .join("|");
const flow = "refreshUrl?: text, scopes?: text{}";

/** Responses of A2A 1.0 (§4, `a2a.proto`). Independent of Parley's schemas, so that a mistake in the schemas is detected. */
const shapesV1: ShapeTable = {
  ...sharedShapes,
  Task: `
    id: nonEmpty, contextId?: text, status: TaskStatus, artifacts?: Artifact[], history?: Message[], metadata?: object`,
  TaskStatus: `state: ${states}, message?: Message, timestamp?: timestamp`,
  Message: `
    messageId: nonEmpty, contextId?: text, taskId?: text, role: ROLE_USER|ROLE_AGENT, parts: Part[1+],
    metadata?: object, extensions?: text[], referenceTaskIds?: text[]`,
  Part: `
    oneof(text?: text, raw?: bytes, url?: text, data?: any),
    metadata?: object, filename?: text, mediaType?: text`,
  TaskStatusUpdateEvent: `taskId: nonEmpty, contextId: nonEmpty, status: TaskStatus, metadata?: object`,
  ListTasksResponse: `tasks: Task[], nextPageToken: text, pageSize: integer, totalSize: integer`,
  TaskPushNotificationConfig: `
    tenant?: text, id?: text, taskId?: text, url: url, token?: text, authentication?: AuthenticationInfo`,
  AuthenticationInfo: `scheme: nonEmpty, credentials?: text`,
  ListTaskPushNotificationConfigsResponse: `configs?: TaskPushNotificationConfig[], nextPageToken?: text`,
  AgentCard: `
    name: nonEmpty, description: nonEmpty, supportedInterfaces: AgentInterface[1+], provider?: AgentProvider,
    version: nonEmpty, documentationUrl?: url, capabilities: AgentCapabilities, securitySchemes?: SecurityScheme{},
    securityRequirements?: SecurityRequirement[], defaultInputModes: nonEmpty[1+], defaultOutputModes: nonEmpty[1+],
    skills: AgentSkill[], signatures?: AgentCardSignature[], iconUrl?: url`,
  AgentInterface: `url: address, protocolBinding: nonEmpty, tenant?: text, protocolVersion: nonEmpty`,
  AgentProvider: `url: url, organization: nonEmpty`,
  AgentCapabilities: `
    streaming?: flag, pushNotifications?: flag, extensions?: AgentExtension[], extendedAgentCard?: flag`,
  AgentExtension: `uri: nonEmpty, description?: text, required?: flag, params?: object`,
  AgentSkill: `
    id: nonEmpty, name: nonEmpty, description: nonEmpty, tags: text[], examples?: text[], inputModes?: text[],
    outputModes?: text[], securityRequirements?: SecurityRequirement[]`,
  AgentCardSignature: `protected: nonEmpty, signature: nonEmpty, header?: object`,
  SecurityRequirement: `schemes?: StringList{}`,
  StringList: `list?: text[]`,
  SecurityScheme: `oneof(
    apiKeySecurityScheme?: APIKeySecurityScheme, httpAuthSecurityScheme?: HTTPAuthSecurityScheme,
    oauth2SecurityScheme?: OAuth2SecurityScheme, openIdConnectSecurityScheme?: OpenIdConnectSecurityScheme,
    mtlsSecurityScheme?: MutualTlsSecurityScheme)`,
  APIKeySecurityScheme: `description?: text, location: query|header|cookie, name: nonEmpty`,
  HTTPAuthSecurityScheme: `description?: text, scheme: nonEmpty, bearerFormat?: text`,
  OAuth2SecurityScheme: `description?: text, flows: OAuthFlows, oauth2MetadataUrl?: url`,
  OpenIdConnectSecurityScheme: `description?: text, openIdConnectUrl: url`,
  MutualTlsSecurityScheme: `description?: text`,
  OAuthFlows: `oneof(
    authorizationCode?: AuthorizationCodeOAuthFlow, clientCredentials?: ClientCredentialsOAuthFlow, implicit?: object,
    password?: object, deviceCode?: DeviceCodeOAuthFlow)`,
  AuthorizationCodeOAuthFlow: `authorizationUrl: url, tokenUrl: url, ${flow}, pkceRequired?: flag`,
  ClientCredentialsOAuthFlow: `tokenUrl: url, ${flow}`,
  DeviceCodeOAuthFlow: `deviceAuthorizationUrl: url, tokenUrl: url, ${flow}`,
};

const statesV03 = "submitted|working|completed|failed|canceled|input-required|rejected|auth-required|unknown";
/** The 0.3 proto spells one state differently. */
const protoStates = states.replace("CANCELED", "CANCELLED");

/** Responses of A2A 0.3 over JSON-RPC, with `kind` (its `types.ts`). */
const shapesV03: ShapeTable = {
  AgentCard: `
    protocolVersion: nonEmpty, name: nonEmpty, description: nonEmpty, url: url, preferredTransport?: nonEmpty,
    additionalInterfaces?: AgentInterface[], iconUrl?: url, provider?: AgentProvider, version: nonEmpty,
    documentationUrl?: url, capabilities: AgentCapabilities, securitySchemes?: object{}, security?: object[],
    defaultInputModes: nonEmpty[1+], defaultOutputModes: nonEmpty[1+], skills: AgentSkill[],
    supportsAuthenticatedExtendedCard?: flag, signatures?: AgentCardSignature[]`,
  AgentInterface: `url: nonEmpty, transport: nonEmpty`,
  AgentSkill: `
    id: nonEmpty, name: nonEmpty, description: nonEmpty, tags: text[], examples?: text[], inputModes?: text[],
    outputModes?: text[], security?: object[]`,
  Task: `
    kind: task, id: nonEmpty, contextId: nonEmpty, status: TaskStatus, artifacts?: Artifact[], history?: Message[],
    metadata?: object`,
  TaskStatus: `state: ${statesV03}, message?: Message, timestamp?: time`,
  Message: `
    kind: message, messageId: nonEmpty, contextId?: text, taskId?: text, role: user|agent, parts: Part[1+],
    metadata?: object, extensions?: text[], referenceTaskIds?: text[]`,
  Part: `kind(text: TextPart, file: FilePart, data: DataPart)`,
  TextPart: `text: text, metadata?: object`,
  FilePart: `file: File, metadata?: object`,
  File: `oneof(bytes?: bytes, uri?: text), name?: text, mimeType?: text`,
  DataPart: `data: object, metadata?: object`,
  Artifact: sharedShapes.Artifact,
  TaskStatusUpdateEvent: `
    kind: status-update, taskId: nonEmpty, contextId: nonEmpty, status: TaskStatus, final: flag, metadata?: object`,
  TaskArtifactUpdateEvent: `kind: artifact-update, ${sharedShapes.TaskArtifactUpdateEvent}`,
  SendMessageResponse: `kind(task: Task, message: Message)`,
  StreamResponse: `kind(
    task: Task, message: Message, status-update: TaskStatusUpdateEvent, artifact-update: TaskArtifactUpdateEvent)`,
};

/** Responses of A2A 0.3 over REST and gRPC, in ProtoJSON (its `a2a.proto`). */
const shapesV03Proto: ShapeTable = {
  ...sharedShapes,
  Task: `
    id: nonEmpty, contextId: nonEmpty, status: TaskStatus, artifacts?: Artifact[], history?: Message[],
    metadata?: object`,
  TaskStatus: `state: ${protoStates}, message?: Message, timestamp?: timestamp`,
  Message: `
    messageId: nonEmpty, contextId?: text, taskId?: text, role: ROLE_USER|ROLE_AGENT, content: Part[1+],
    metadata?: object, extensions?: text[]`,
  Part: `oneof(text?: text, file?: File, data?: Data), metadata?: object`,
  File: `oneof(fileWithBytes?: bytes, fileWithUri?: text), mimeType?: text, name?: text`,
  Data: `data: object`,
  TaskStatusUpdateEvent: `
    taskId: nonEmpty, contextId: nonEmpty, status: TaskStatus, final?: flag, metadata?: object`,
};

/** 1.0 shapes have the names of the specification. 0.3 shapes have the prefix `0.3/`. */
const shapes: ReadonlyMap<string, Shape> = new Map([
  ...shapesIn(shapesV1, ""),
  ...shapesIn(shapesV03, "0.3/"),
  ...shapesIn(shapesV03Proto, "0.3/proto/"),
]);

function shapesIn(table: ShapeTable, prefix: string): readonly (readonly [name: string, shape: Shape])[] {
  return Object.entries(table).map(([name, text]) => [`${prefix}${name}`, parseShape(text, prefix)]);
}

function parseShape(text: string, prefix: string): Shape {
  const [, how, inside = "", rest = ""] = /^(?:(oneof|kind)\(([^)]*)\),?)?([^]*)$/.exec(text.trim()) ?? [];
  const chosen = fieldsIn(inside);
  const fields = fieldsIn(rest);
  if (how === "kind")
    return { prefix, fields, byKind: Object.fromEntries(chosen.map(({ name, type }) => [name, type])) };
  if (how === "oneof") return { prefix, fields: [...chosen, ...fields], oneOf: chosen.map(({ name }) => name) };
  return { prefix, fields };
}

function fieldsIn(text: string): readonly Field[] {
  return Array.from(
    text.matchAll(/(?<![\w-])([\w-]+)(\??): ([\w|-]+)(\[\]|\[1\+\]|\{\}|)/g),
    ([, name = "", optional, type = "", many = ""]) => ({ name, type, required: optional === "", many }),
  );
}

const base64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}(?:==)?|[A-Za-z0-9+/]{3}=?)?$/;
const utc = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?Z$/;
const isText = (value: Json): value is string => typeof value === "string";
const isTime = (value: Json): value is string => isText(value) && !Number.isNaN(Date.parse(value));

/** Types that are not shapes, with their names in reports. */
const scalars: Readonly<Record<string, readonly [is: (value: Json) => boolean, expected: string]>> = {
  text: [isText, "a string"],
  nonEmpty: [(value) => isText(value) && value !== "", "a non-empty string"],
  flag: [(value) => typeof value === "boolean", "true or false"],
  integer: [(value) => Number.isInteger(value), "an integer"],
  object: [isMap, "an object"],
  any: [() => true, "anything"],
  url: [(value) => isText(value) && URL.canParse(value), "an absolute URL"],
  // gRPC addresses on cards commonly have no scheme.
  address: [(value) => isText(value) && /^[^\s/]+(?::\d+$|:\/\/)/.test(value), "an address"],
  bytes: [(value) => isText(value) && base64.test(value), "base64 (RFC 4648 §4)"],
  time: [isTime, "an ISO 8601 time"],
  timestamp: [(value) => isTime(value) && utc.test(value), "a time in UTC, such as 2026-01-31T12:00:00.000Z (§5.6.1)"],
};

export function isShapeName(name: Json): name is string {
  return typeof name === "string" && shapes.has(name);
}

/** The first deviation of a value from the named shape. Unknown fields are allowed, because later versions may add them. */
export function shapeProblem(name: string, value: unknown, path = ""): ShapeProblem | undefined {
  const shape = shapes.get(name);
  if (shape === undefined) throw new Error(`no shape is named ${name}`);
  if (!isMap(value)) return { path, expected: `a ${name}`, value };
  const at = (field: string): string => (path === "" ? field : `${path}.${field}`);
  const { byKind, oneOf, fields, prefix } = shape;
  if (byKind !== undefined) {
    const { kind } = value;
    const chosen = typeof kind === "string" && Object.hasOwn(byKind, kind) ? byKind[kind] : undefined;
    if (chosen !== undefined) return shapeProblem(prefix + chosen, value, path);
    return { path: at("kind"), expected: `one of ${Object.keys(byKind).join(", ")}`, value: kind };
  }
  const misspelled = fields.find(
    (field) => field.name !== snake(field.name) && Object.hasOwn(value, snake(field.name)),
  );
  if (misspelled !== undefined) {
    const other = snake(misspelled.name);
    return { path: at(other), expected: `the name ${misspelled.name} (§5.5)`, value: value[other] };
  }
  const wrong = firstOf(fields, (field) => fieldProblem(field, prefix, present(value, field.name), at(field.name)));
  if (wrong !== undefined) return wrong;
  // null is a value only for `data`.
  const chosen = oneOf?.filter((field) => Object.hasOwn(value, field) && (value[field] !== null || field === "data"));
  if (chosen === undefined || chosen.length === 1) return undefined;
  return { path, expected: `exactly one of ${(oneOf ?? []).join(", ")}`, value };
}

/** The member, or undefined. In ProtoJSON, null means absent. */
function present(value: Readonly<Record<string, Json>>, field: string): Json | undefined {
  return Object.hasOwn(value, field) && value[field] !== null ? value[field] : undefined;
}

function fieldProblem(
  { type, many, required }: Field,
  prefix: string,
  value: Json | undefined,
  path: string,
): ShapeProblem | undefined {
  if (value === undefined) return required ? { path, expected: "a value (required)", value } : undefined;
  if (many === "") return typeProblem(type, prefix, value, path);
  if (many === "{}") {
    if (!isMap(value)) return { path, expected: "an object", value };
    return firstOf(Object.entries(value), ([key, one]) => typeProblem(type, prefix, one, `${path}.${key}`));
  }
  if (!isList(value)) return { path, expected: "an array", value };
  if (many === "[1+]" && value.length === 0) return { path, expected: "at least one element (§5.7)", value };
  return firstOf(value, (one, at) => typeProblem(type, prefix, one, `${path}[${at}]`));
}

function typeProblem(type: string, prefix: string, value: Json, path: string): ShapeProblem | undefined {
  const scalar = Object.hasOwn(scalars, type) ? scalars[type] : undefined;
  if (scalar !== undefined) return scalar[0](value) ? undefined : { path, expected: scalar[1], value };
  // A version without its own shape uses the 1.0 shape.
  const shape = [prefix + type, type].find((name) => shapes.has(name));
  if (shape !== undefined) return shapeProblem(shape, value, path);
  const names = type.split("|");
  return isText(value) && names.includes(value) ? undefined : { path, expected: `one of ${names.join(", ")}`, value };
}

function snake(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
