import type * as model from "../../src/model/index.ts";

/**
 * The messages of `specification/a2a.proto` (A2A 1.0), copied by hand: field names in their JSON spelling, and types with
 * the names in the proto. `!` is REQUIRED, `?` is the keyword `optional`, `[]` is repeated, `{T}` is a map from string to T.
 * `of` names the members of a oneof. Tests compare types, schemas and codecs with this table.
 */
const proto = {
  SendMessageConfiguration: {
    acceptedOutputModes: "string[]",
    taskPushNotificationConfig: "TaskPushNotificationConfig",
    historyLength: "count?",
    returnImmediately: "bool",
  },
  Task: {
    id: "id!",
    contextId: "id",
    status: "TaskStatus!",
    artifacts: "Artifact[]",
    history: "Message[]",
    metadata: "Struct",
  },
  TaskStatus: { state: "TaskState!", message: "Message", timestamp: "Timestamp" },
  Part: {
    text: "string",
    raw: "bytes",
    url: "filled",
    data: "Value",
    metadata: "Struct",
    filename: "string",
    mediaType: "string",
  },
  Message: {
    messageId: "id!",
    contextId: "id",
    taskId: "id",
    role: "Role!",
    parts: "Part[]!",
    metadata: "Struct",
    extensions: "string[]",
    referenceTaskIds: "id[]",
  },
  Artifact: {
    artifactId: "id!",
    name: "string",
    description: "string",
    parts: "Part[]!",
    metadata: "Struct",
    extensions: "string[]",
  },
  TaskStatusUpdateEvent: { taskId: "id!", contextId: "id!", status: "TaskStatus!", metadata: "Struct" },
  TaskArtifactUpdateEvent: {
    taskId: "id!",
    contextId: "id!",
    artifact: "Artifact!",
    append: "bool",
    lastChunk: "bool",
    metadata: "Struct",
  },
  AuthenticationInfo: { scheme: "filled!", credentials: "string" },
  AgentInterface: { url: "filled!", protocolBinding: "filled!", tenant: "string", protocolVersion: "filled!" },
  AgentCard: {
    name: "filled!",
    description: "filled!",
    supportedInterfaces: "AgentInterface[]!",
    provider: "AgentProvider",
    version: "filled!",
    documentationUrl: "string?",
    capabilities: "AgentCapabilities!",
    securitySchemes: "{SecurityScheme}",
    securityRequirements: "SecurityRequirement[]",
    defaultInputModes: "string[]!",
    defaultOutputModes: "string[]!",
    skills: "AgentSkill[]!",
    signatures: "AgentCardSignature[]",
    iconUrl: "string?",
  },
  AgentProvider: { url: "filled!", organization: "filled!" },
  AgentCapabilities: {
    streaming: "bool?",
    pushNotifications: "bool?",
    extensions: "AgentExtension[]",
    extendedAgentCard: "bool?",
  },
  AgentExtension: { uri: "string", description: "string", required: "bool", params: "Struct" },
  AgentSkill: {
    id: "filled!",
    name: "filled!",
    description: "filled!",
    tags: "string[]!",
    examples: "string[]",
    inputModes: "string[]",
    outputModes: "string[]",
    securityRequirements: "SecurityRequirement[]",
  },
  AgentCardSignature: { protected: "filled!", signature: "filled!", header: "Struct" },
  TaskPushNotificationConfig: {
    tenant: "id",
    id: "id",
    taskId: "id",
    url: "filled!",
    token: "string",
    authentication: "AuthenticationInfo",
  },
  StringList: { list: "string[]" },
  SecurityRequirement: { schemes: "{StringList}" },
  SecurityScheme: {
    apiKeySecurityScheme: "APIKeySecurityScheme",
    httpAuthSecurityScheme: "HTTPAuthSecurityScheme",
    oauth2SecurityScheme: "OAuth2SecurityScheme",
    openIdConnectSecurityScheme: "OpenIdConnectSecurityScheme",
    mtlsSecurityScheme: "MutualTlsSecurityScheme",
  },
  APIKeySecurityScheme: { description: "string", location: "filled!", name: "filled!" },
  HTTPAuthSecurityScheme: { description: "string", scheme: "filled!", bearerFormat: "string" },
  OAuth2SecurityScheme: { description: "string", flows: "OAuthFlows!", oauth2MetadataUrl: "string" },
  OpenIdConnectSecurityScheme: { description: "string", openIdConnectUrl: "filled!" },
  MutualTlsSecurityScheme: { description: "string" },
  OAuthFlows: {
    authorizationCode: "AuthorizationCodeOAuthFlow",
    clientCredentials: "ClientCredentialsOAuthFlow",
    implicit: "ImplicitOAuthFlow",
    password: "PasswordOAuthFlow",
    deviceCode: "DeviceCodeOAuthFlow",
  },
  AuthorizationCodeOAuthFlow: {
    authorizationUrl: "filled!",
    tokenUrl: "filled!",
    refreshUrl: "string",
    scopes: "{string}!",
    pkceRequired: "bool",
  },
  ClientCredentialsOAuthFlow: { tokenUrl: "filled!", refreshUrl: "string", scopes: "{string}!" },
  ImplicitOAuthFlow: { authorizationUrl: "string", refreshUrl: "string", scopes: "{string}" },
  PasswordOAuthFlow: { tokenUrl: "string", refreshUrl: "string", scopes: "{string}" },
  DeviceCodeOAuthFlow: {
    deviceAuthorizationUrl: "filled!",
    tokenUrl: "filled!",
    refreshUrl: "string",
    scopes: "{string}!",
  },
  SendMessageRequest: {
    tenant: "id",
    message: "Message!",
    configuration: "SendMessageConfiguration",
    metadata: "Struct",
  },
  GetTaskRequest: { tenant: "id", id: "id!", historyLength: "count?" },
  ListTasksRequest: {
    tenant: "id",
    contextId: "id",
    status: "TaskState",
    pageSize: "page?",
    pageToken: "string",
    historyLength: "count?",
    statusTimestampAfter: "Timestamp",
    includeArtifacts: "bool?",
  },
  ListTasksResponse: { tasks: "Task[]!", nextPageToken: "string!", pageSize: "count!", totalSize: "count!" },
  CancelTaskRequest: { tenant: "id", id: "id!", metadata: "Struct" },
  GetTaskPushNotificationConfigRequest: { tenant: "id", taskId: "id!", id: "id!" },
  DeleteTaskPushNotificationConfigRequest: { tenant: "id", taskId: "id!", id: "id!" },
  SubscribeToTaskRequest: { tenant: "id", id: "id!" },
  ListTaskPushNotificationConfigsRequest: { tenant: "id", taskId: "id!", pageSize: "count", pageToken: "string" },
  GetExtendedAgentCardRequest: { tenant: "id" },
  SendMessageResponse: { task: "Task", message: "Message" },
  StreamResponse: {
    task: "Task",
    message: "Message",
    statusUpdate: "TaskStatusUpdateEvent",
    artifactUpdate: "TaskArtifactUpdateEvent",
  },
  ListTaskPushNotificationConfigsResponse: { configs: "TaskPushNotificationConfig[]", nextPageToken: "string" },
} as const;

export type Proto = typeof proto;
export type MessageName = keyof Proto;

/** The members of each oneof. The right side is the official codec's name for that oneof. */
const oneOfs = {
  Part: { of: ["text", "raw", "url", "data"], sdk: "content" },
  SecurityScheme: { of: Object.keys(proto.SecurityScheme), sdk: "scheme" },
  OAuthFlows: { of: Object.keys(proto.OAuthFlows), sdk: "flow" },
  SendMessageResponse: { of: Object.keys(proto.SendMessageResponse), sdk: "payload" },
  StreamResponse: { of: Object.keys(proto.StreamResponse), sdk: "payload" },
} as const satisfies Partial<Record<MessageName, { of: readonly string[]; sdk: string }>>;

export const messageNames = Object.keys(proto) as MessageName[];

export function oneOfOf(name: MessageName): { of: readonly string[]; sdk: string } | undefined {
  return (oneOfs as Partial<Record<MessageName, { of: readonly string[]; sdk: string }>>)[name];
}

/** The parsed type of a field in the table. */
export interface FieldKind {
  readonly base: string;
  readonly required: boolean;
  /** Whether the field has the keyword `optional`, so that a default that is set differs from an absent field. */
  readonly explicit: boolean;
  readonly shape: "one" | "list" | "map";
}

function kindOf(spelled: string): FieldKind {
  const required = spelled.endsWith("!");
  const explicit = spelled.endsWith("?");
  const type = required || explicit ? spelled.slice(0, -1) : spelled;
  if (type.endsWith("[]")) return { base: type.slice(0, -2), required, explicit, shape: "list" };
  if (type.startsWith("{")) return { base: type.slice(1, -1), required, explicit, shape: "map" };
  return { base: type, required, explicit, shape: "one" };
}

export function fieldsOf(name: MessageName): readonly (readonly [string, FieldKind])[] {
  return Object.entries(proto[name]).map(([field, spelled]) => [field, kindOf(spelled)] as const);
}

export function isMessageName(name: string): name is MessageName {
  return Object.hasOwn(proto, name);
}

/** The model types by their proto names. */
export type Models = { [Name in MessageName]: Name extends keyof Exported ? Exported[Name] : never };

interface Exported {
  SendMessageConfiguration: model.SendMessageConfiguration;
  Task: model.Task;
  TaskStatus: model.TaskStatus;
  Part: model.Part;
  Message: model.Message;
  Artifact: model.Artifact;
  TaskStatusUpdateEvent: model.TaskStatusUpdateEvent;
  TaskArtifactUpdateEvent: model.TaskArtifactUpdateEvent;
  AuthenticationInfo: model.AuthenticationInfo;
  AgentInterface: model.AgentInterface;
  AgentCard: model.AgentCard;
  AgentProvider: model.AgentProvider;
  AgentCapabilities: model.AgentCapabilities;
  AgentExtension: model.AgentExtension;
  AgentSkill: model.AgentSkill;
  AgentCardSignature: model.AgentCardSignature;
  TaskPushNotificationConfig: model.TaskPushNotificationConfig;
  StringList: model.StringList;
  SecurityRequirement: model.SecurityRequirement;
  SecurityScheme: model.SecurityScheme;
  APIKeySecurityScheme: model.APIKeySecurityScheme;
  HTTPAuthSecurityScheme: model.HTTPAuthSecurityScheme;
  OAuth2SecurityScheme: model.OAuth2SecurityScheme;
  OpenIdConnectSecurityScheme: model.OpenIdConnectSecurityScheme;
  MutualTlsSecurityScheme: model.MutualTlsSecurityScheme;
  OAuthFlows: model.OAuthFlows;
  AuthorizationCodeOAuthFlow: model.AuthorizationCodeOAuthFlow;
  ClientCredentialsOAuthFlow: model.ClientCredentialsOAuthFlow;
  ImplicitOAuthFlow: model.ImplicitOAuthFlow;
  PasswordOAuthFlow: model.PasswordOAuthFlow;
  DeviceCodeOAuthFlow: model.DeviceCodeOAuthFlow;
  SendMessageRequest: model.SendMessageRequest;
  GetTaskRequest: model.GetTaskRequest;
  ListTasksRequest: model.ListTasksRequest;
  ListTasksResponse: model.ListTasksResponse;
  CancelTaskRequest: model.CancelTaskRequest;
  GetTaskPushNotificationConfigRequest: model.GetTaskPushNotificationConfigRequest;
  DeleteTaskPushNotificationConfigRequest: model.DeleteTaskPushNotificationConfigRequest;
  SubscribeToTaskRequest: model.SubscribeToTaskRequest;
  ListTaskPushNotificationConfigsRequest: model.ListTaskPushNotificationConfigsRequest;
  GetExtendedAgentCardRequest: model.GetExtendedAgentCardRequest;
  SendMessageResponse: model.SendMessageResponse;
  StreamResponse: model.StreamResponse;
  ListTaskPushNotificationConfigsResponse: model.ListTaskPushNotificationConfigsResponse;
}
