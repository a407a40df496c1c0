import { taskStates } from "./log.ts";
import {
  anything,
  base64,
  blank,
  boolean,
  exactlyOne,
  filled,
  id,
  integer,
  list,
  none,
  nothing,
  object,
  oneName,
  optional,
  optionalId,
  required,
  string,
  strings,
  struct,
  timestamp,
  type Schema,
  record,
  type OneOf,
  union,
} from "./schema.ts";
import type {
  CancelTaskRequest,
  DeleteTaskPushNotificationConfigRequest,
  Empty,
  GetExtendedAgentCardRequest,
  GetTaskPushNotificationConfigRequest,
  GetTaskRequest,
  ListTaskPushNotificationConfigsRequest,
  ListTaskPushNotificationConfigsResponse,
  ListTasksRequest,
  ListTasksResponse,
  SendMessageConfiguration,
  SendMessageRequest,
  SendMessageResponse,
  SubscribeToTaskRequest,
  Artifact,
  AuthenticationInfo,
  Message,
  Part,
  Role,
  StreamResponse,
  Task,
  TaskArtifactUpdateEvent,
  TaskPushNotificationConfig,
  TaskState,
  TaskStatus,
  TaskStatusUpdateEvent,
} from "./types.ts";
import type {
  AgentCapabilities,
  AgentCard,
  AgentCardSignature,
  AgentExtension,
  AgentInterface,
  AgentProvider,
  AgentSkill,
  APIKeySecurityScheme,
  AuthorizationCodeOAuthFlow,
  ClientCredentialsOAuthFlow,
  DeviceCodeOAuthFlow,
  HTTPAuthSecurityScheme,
  ImplicitOAuthFlow,
  MutualTlsSecurityScheme,
  OAuth2SecurityScheme,
  OAuthFlows,
  OpenIdConnectSecurityScheme,
  PasswordOAuthFlow,
  SecurityRequirement,
  SecurityScheme,
  StringList,
} from "./card.ts";

/** A schema for each message of the A2A 1.0 proto. In answers, default values that encoders of protobuf leave out are filled in. */

const ids: Schema<readonly string[]> = list(id);
const historyLength: Schema<number> = integer(0);

export const taskStateSchema: Schema<TaskState> = oneName(taskStates);
export const roleSchema: Schema<Role> = oneName(["ROLE_USER", "ROLE_AGENT"]);

export const partSchema: Schema<Part> = union<Part>(
  {
    text: optional(string),
    raw: optional(base64),
    url: optional(filled),
    data: { schema: anything, required: false, nullable: true },
    metadata: optional(struct),
    filename: optional(blank),
    mediaType: optional(blank),
  },
  // The JavaScript SDK drops `data: null`, so such a part arrives with no content at all.
  { members: ["text", "raw", "url", "data"], none: { data: null } },
);

const parts: Schema<readonly Part[]> = list(partSchema, "must hold at least one part");

export const messageSchema: Schema<Message> = object<Message>({
  messageId: required(id, nothing),
  contextId: optional(optionalId),
  taskId: optional(optionalId),
  role: required(roleSchema),
  parts: required(parts, none),
  metadata: optional(struct),
  extensions: optional(strings),
  referenceTaskIds: optional(ids),
});

export const artifactSchema: Schema<Artifact> = object<Artifact>({
  artifactId: required(id, nothing),
  name: optional(blank),
  description: optional(blank),
  parts: required(parts, none),
  metadata: optional(struct),
  extensions: optional(strings),
});

export const taskStatusSchema: Schema<TaskStatus> = object<TaskStatus>({
  state: required(taskStateSchema),
  message: optional(messageSchema),
  timestamp: optional(timestamp),
});

export const taskSchema: Schema<Task> = object<Task>({
  id: required(id),
  contextId: optional(optionalId),
  status: required(taskStatusSchema),
  artifacts: optional(list(artifactSchema)),
  history: optional(list(messageSchema)),
  metadata: optional(struct),
});

export const taskStatusUpdateEventSchema: Schema<TaskStatusUpdateEvent> = object<TaskStatusUpdateEvent>({
  taskId: required(id),
  contextId: required(id, nothing),
  status: required(taskStatusSchema),
  metadata: optional(struct),
});

export const taskArtifactUpdateEventSchema: Schema<TaskArtifactUpdateEvent> = object<TaskArtifactUpdateEvent>({
  taskId: required(id),
  contextId: required(id, nothing),
  artifact: required(artifactSchema),
  append: optional(boolean),
  lastChunk: optional(boolean),
  metadata: optional(struct),
});

export const streamResponseSchema: Schema<StreamResponse> = union<StreamResponse>(
  {
    task: optional(taskSchema),
    message: optional(messageSchema),
    statusUpdate: optional(taskStatusUpdateEventSchema),
    artifactUpdate: optional(taskArtifactUpdateEventSchema),
  },
  exactlyOne,
);

export const sendMessageResponseSchema: Schema<SendMessageResponse> = union<SendMessageResponse>(
  { task: optional(taskSchema), message: optional(messageSchema) },
  exactlyOne,
);

export const authenticationInfoSchema: Schema<AuthenticationInfo> = object<AuthenticationInfo>({
  scheme: required(filled),
  credentials: optional(blank),
});

export const taskPushNotificationConfigSchema: Schema<TaskPushNotificationConfig> = object<TaskPushNotificationConfig>({
  tenant: optional(optionalId),
  id: optional(optionalId),
  taskId: optional(optionalId),
  url: required(filled),
  token: optional(blank),
  authentication: optional(authenticationInfoSchema),
});

export const sendMessageConfigurationSchema: Schema<SendMessageConfiguration> = object<SendMessageConfiguration>({
  acceptedOutputModes: optional(strings),
  taskPushNotificationConfig: optional(taskPushNotificationConfigSchema),
  historyLength: optional(historyLength),
  returnImmediately: optional(boolean),
});

export const sendMessageRequestSchema: Schema<SendMessageRequest> = object<SendMessageRequest>({
  tenant: optional(optionalId),
  message: required(messageSchema),
  configuration: optional(sendMessageConfigurationSchema),
  metadata: optional(struct),
});

const ofTask = { tenant: optional(optionalId), id: required(id) };

export const getTaskRequestSchema: Schema<GetTaskRequest> = object<GetTaskRequest>({
  ...ofTask,
  historyLength: optional(historyLength),
});

export const listTasksRequestSchema: Schema<ListTasksRequest> = object<ListTasksRequest>({
  tenant: optional(optionalId),
  contextId: optional(optionalId),
  // The zero value of a proto3 enumeration means: not set.
  status: optional(oneName(taskStates, "TASK_STATE_UNSPECIFIED")),
  pageSize: optional(integer(1, 100)),
  pageToken: optional(blank),
  historyLength: optional(historyLength),
  statusTimestampAfter: optional(timestamp),
  includeArtifacts: optional(boolean),
});

export const listTasksResponseSchema: Schema<ListTasksResponse> = object<ListTasksResponse>({
  tasks: required(list(taskSchema), none),
  nextPageToken: required(string, nothing),
  pageSize: required(integer(0), () => 0),
  totalSize: required(integer(0), () => 0),
});

export const cancelTaskRequestSchema: Schema<CancelTaskRequest> = object<CancelTaskRequest>({
  ...ofTask,
  metadata: optional(struct),
});

export const subscribeToTaskRequestSchema: Schema<SubscribeToTaskRequest> = object<SubscribeToTaskRequest>(ofTask);

const pushConfigKey: Schema<GetTaskPushNotificationConfigRequest> = object<GetTaskPushNotificationConfigRequest>({
  tenant: optional(optionalId),
  taskId: required(id),
  id: required(id),
});

export const getTaskPushNotificationConfigRequestSchema: Schema<GetTaskPushNotificationConfigRequest> = pushConfigKey;
export const deleteTaskPushNotificationConfigRequestSchema: Schema<DeleteTaskPushNotificationConfigRequest> =
  pushConfigKey;

export const listTaskPushNotificationConfigsRequestSchema: Schema<ListTaskPushNotificationConfigsRequest> =
  object<ListTaskPushNotificationConfigsRequest>({
    tenant: optional(optionalId),
    taskId: required(id),
    pageSize: optional(integer(0)),
    pageToken: optional(blank),
  });

export const listTaskPushNotificationConfigsResponseSchema: Schema<ListTaskPushNotificationConfigsResponse> =
  object<ListTaskPushNotificationConfigsResponse>({
    configs: optional(list(taskPushNotificationConfigSchema)),
    nextPageToken: optional(blank),
  });

export const getExtendedAgentCardRequestSchema: Schema<GetExtendedAgentCardRequest> =
  object<GetExtendedAgentCardRequest>({ tenant: optional(optionalId) });

export const emptySchema: Schema<Empty> = object<Empty>({});

/** Messages of a card. Texts stay unchanged, empty ones too, because a signature covers them (A2A 1.0 §8.4.1). */

/** A card stays readable where one of its members is of a kind that this release does not know. */
const oneOrUnknown: OneOf = { none: {} };

const scopes: Schema<Readonly<Record<string, string>>> = record(string);
const noScopes = (): Readonly<Record<string, string>> => ({});

export const agentInterfaceSchema: Schema<AgentInterface> = object<AgentInterface>({
  url: required(filled),
  protocolBinding: required(filled),
  tenant: optional(string),
  protocolVersion: required(filled),
});

export const agentProviderSchema: Schema<AgentProvider> = object<AgentProvider>({
  url: required(filled, nothing),
  organization: required(filled, nothing),
});

export const agentExtensionSchema: Schema<AgentExtension> = object<AgentExtension>({
  uri: optional(string),
  description: optional(string),
  required: optional(boolean),
  params: optional(struct),
});

export const agentCapabilitiesSchema: Schema<AgentCapabilities> = object<AgentCapabilities>({
  streaming: optional(boolean),
  pushNotifications: optional(boolean),
  extensions: optional(list(agentExtensionSchema)),
  extendedAgentCard: optional(boolean),
});

export const stringListSchema: Schema<StringList> = object<StringList>({ list: optional(strings) });

export const securityRequirementSchema: Schema<SecurityRequirement> = object<SecurityRequirement>({
  schemes: optional(record(stringListSchema)),
});

export const agentSkillSchema: Schema<AgentSkill> = object<AgentSkill>({
  id: required(filled),
  name: required(filled, nothing),
  description: required(filled, nothing),
  tags: required(strings, none),
  examples: optional(strings),
  inputModes: optional(strings),
  outputModes: optional(strings),
  securityRequirements: optional(list(securityRequirementSchema)),
});

export const agentCardSignatureSchema: Schema<AgentCardSignature> = object<AgentCardSignature>({
  protected: required(filled),
  signature: required(filled),
  header: optional(struct),
});

export const apiKeySecuritySchemeSchema: Schema<APIKeySecurityScheme> = object<APIKeySecurityScheme>({
  description: optional(string),
  location: required(filled),
  name: required(filled),
});

export const httpAuthSecuritySchemeSchema: Schema<HTTPAuthSecurityScheme> = object<HTTPAuthSecurityScheme>({
  description: optional(string),
  scheme: required(filled),
  bearerFormat: optional(string),
});

export const authorizationCodeOAuthFlowSchema: Schema<AuthorizationCodeOAuthFlow> = object<AuthorizationCodeOAuthFlow>({
  authorizationUrl: required(filled),
  tokenUrl: required(filled),
  refreshUrl: optional(string),
  scopes: required(scopes, noScopes),
  pkceRequired: optional(boolean),
});

export const clientCredentialsOAuthFlowSchema: Schema<ClientCredentialsOAuthFlow> = object<ClientCredentialsOAuthFlow>({
  tokenUrl: required(filled),
  refreshUrl: optional(string),
  scopes: required(scopes, noScopes),
});

export const implicitOAuthFlowSchema: Schema<ImplicitOAuthFlow> = object<ImplicitOAuthFlow>({
  authorizationUrl: optional(string),
  refreshUrl: optional(string),
  scopes: optional(scopes),
});

export const passwordOAuthFlowSchema: Schema<PasswordOAuthFlow> = object<PasswordOAuthFlow>({
  tokenUrl: optional(string),
  refreshUrl: optional(string),
  scopes: optional(scopes),
});

export const deviceCodeOAuthFlowSchema: Schema<DeviceCodeOAuthFlow> = object<DeviceCodeOAuthFlow>({
  deviceAuthorizationUrl: required(filled),
  tokenUrl: required(filled),
  refreshUrl: optional(string),
  scopes: required(scopes, noScopes),
});

export const oAuthFlowsSchema: Schema<OAuthFlows> = union<OAuthFlows>(
  {
    authorizationCode: optional(authorizationCodeOAuthFlowSchema),
    clientCredentials: optional(clientCredentialsOAuthFlowSchema),
    implicit: optional(implicitOAuthFlowSchema),
    password: optional(passwordOAuthFlowSchema),
    deviceCode: optional(deviceCodeOAuthFlowSchema),
  },
  oneOrUnknown,
);

export const oAuth2SecuritySchemeSchema: Schema<OAuth2SecurityScheme> = object<OAuth2SecurityScheme>({
  description: optional(string),
  flows: required(oAuthFlowsSchema),
  oauth2MetadataUrl: optional(string),
});

export const openIdConnectSecuritySchemeSchema: Schema<OpenIdConnectSecurityScheme> =
  object<OpenIdConnectSecurityScheme>({
    description: optional(string),
    openIdConnectUrl: required(filled),
  });

export const mutualTlsSecuritySchemeSchema: Schema<MutualTlsSecurityScheme> = object<MutualTlsSecurityScheme>({
  description: optional(string),
});

export const securitySchemeSchema: Schema<SecurityScheme> = union<SecurityScheme>(
  {
    apiKeySecurityScheme: optional(apiKeySecuritySchemeSchema),
    httpAuthSecurityScheme: optional(httpAuthSecuritySchemeSchema),
    oauth2SecurityScheme: optional(oAuth2SecuritySchemeSchema),
    openIdConnectSecurityScheme: optional(openIdConnectSecuritySchemeSchema),
    mtlsSecurityScheme: optional(mutualTlsSecuritySchemeSchema),
  },
  oneOrUnknown,
);

export const agentCardSchema: Schema<AgentCard> = object<AgentCard>({
  name: required(filled, nothing),
  description: required(filled, nothing),
  supportedInterfaces: required(list(agentInterfaceSchema, "must hold at least one interface")),
  provider: optional(agentProviderSchema),
  version: required(filled, nothing),
  documentationUrl: optional(string),
  capabilities: required(agentCapabilitiesSchema, () => ({})),
  securitySchemes: optional(record(securitySchemeSchema)),
  securityRequirements: optional(list(securityRequirementSchema)),
  defaultInputModes: required(strings, none),
  defaultOutputModes: required(strings, none),
  skills: required(list(agentSkillSchema), none),
  signatures: optional(list(agentCardSignatureSchema)),
  iconUrl: optional(string),
});
