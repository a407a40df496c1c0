import { taskStates } from "./log.ts";
import type { Schema, OneOf } from "./schema.ts";
import * as s from "./schema.ts";
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

/** A schema for each message of the A2A 1.0 proto. In answers, adds default values that protobuf encoders omit. */

const ids: Schema<readonly string[]> = s.list(s.id);
const historyLength: Schema<number> = s.integer(0);

export const taskStateSchema: Schema<TaskState> = s.oneName(taskStates);
export const roleSchema: Schema<Role> = s.oneName(["ROLE_USER", "ROLE_AGENT"]);

export const partSchema: Schema<Part> = s.union<Part>(
  {
    text: s.optional(s.string),
    raw: s.optional(s.base64),
    url: s.optional(s.filled),
    data: { schema: s.anything, required: false, nullable: true },
    metadata: s.optional(s.struct),
    filename: s.optional(s.blank),
    mediaType: s.optional(s.blank),
  },
  // The JavaScript SDK drops `data: null`, so such a part arrives with no content at all.
  { members: ["text", "raw", "url", "data"], none: { data: null } },
);

const parts: Schema<readonly Part[]> = s.list(partSchema, "must hold at least one part");

export const messageSchema: Schema<Message> = s.object<Message>({
  messageId: s.required(s.id, s.nothing),
  contextId: s.optional(s.optionalId),
  taskId: s.optional(s.optionalId),
  role: s.required(roleSchema),
  parts: s.required(parts, s.none),
  metadata: s.optional(s.struct),
  extensions: s.optional(s.strings),
  referenceTaskIds: s.optional(ids),
});

export const artifactSchema: Schema<Artifact> = s.object<Artifact>({
  artifactId: s.required(s.id, s.nothing),
  name: s.optional(s.blank),
  description: s.optional(s.blank),
  parts: s.required(parts, s.none),
  metadata: s.optional(s.struct),
  extensions: s.optional(s.strings),
});

export const taskStatusSchema: Schema<TaskStatus> = s.object<TaskStatus>({
  state: s.required(taskStateSchema),
  message: s.optional(messageSchema),
  timestamp: s.optional(s.timestamp),
});

export const taskSchema: Schema<Task> = s.object<Task>({
  id: s.required(s.id),
  contextId: s.optional(s.optionalId),
  status: s.required(taskStatusSchema),
  artifacts: s.optional(s.list(artifactSchema)),
  history: s.optional(s.list(messageSchema)),
  metadata: s.optional(s.struct),
});

export const taskStatusUpdateEventSchema: Schema<TaskStatusUpdateEvent> = s.object<TaskStatusUpdateEvent>({
  taskId: s.required(s.id),
  contextId: s.required(s.id, s.nothing),
  status: s.required(taskStatusSchema),
  metadata: s.optional(s.struct),
});

export const taskArtifactUpdateEventSchema: Schema<TaskArtifactUpdateEvent> = s.object<TaskArtifactUpdateEvent>({
  taskId: s.required(s.id),
  contextId: s.required(s.id, s.nothing),
  artifact: s.required(artifactSchema),
  append: s.optional(s.boolean),
  lastChunk: s.optional(s.boolean),
  metadata: s.optional(s.struct),
});

export const streamResponseSchema: Schema<StreamResponse> = s.union<StreamResponse>(
  {
    task: s.optional(taskSchema),
    message: s.optional(messageSchema),
    statusUpdate: s.optional(taskStatusUpdateEventSchema),
    artifactUpdate: s.optional(taskArtifactUpdateEventSchema),
  },
  s.exactlyOne,
);

export const sendMessageResponseSchema: Schema<SendMessageResponse> = s.union<SendMessageResponse>(
  { task: s.optional(taskSchema), message: s.optional(messageSchema) },
  s.exactlyOne,
);

export const authenticationInfoSchema: Schema<AuthenticationInfo> = s.object<AuthenticationInfo>({
  scheme: s.required(s.filled),
  credentials: s.optional(s.blank),
});

export const taskPushNotificationConfigSchema: Schema<TaskPushNotificationConfig> =
  s.object<TaskPushNotificationConfig>({
    tenant: s.optional(s.optionalId),
    id: s.optional(s.optionalId),
    taskId: s.optional(s.optionalId),
    url: s.required(s.filled),
    token: s.optional(s.blank),
    authentication: s.optional(authenticationInfoSchema),
  });

export const sendMessageConfigurationSchema: Schema<SendMessageConfiguration> = s.object<SendMessageConfiguration>({
  acceptedOutputModes: s.optional(s.strings),
  taskPushNotificationConfig: s.optional(taskPushNotificationConfigSchema),
  historyLength: s.optional(historyLength),
  returnImmediately: s.optional(s.boolean),
});

export const sendMessageRequestSchema: Schema<SendMessageRequest> = s.object<SendMessageRequest>({
  tenant: s.optional(s.optionalId),
  message: s.required(messageSchema),
  configuration: s.optional(sendMessageConfigurationSchema),
  metadata: s.optional(s.struct),
});

const ofTask = { tenant: s.optional(s.optionalId), id: s.required(s.id) };

export const getTaskRequestSchema: Schema<GetTaskRequest> = s.object<GetTaskRequest>({
  ...ofTask,
  historyLength: s.optional(historyLength),
});

export const listTasksRequestSchema: Schema<ListTasksRequest> = s.object<ListTasksRequest>({
  tenant: s.optional(s.optionalId),
  contextId: s.optional(s.optionalId),
  // The zero value of a proto3 enumeration means "not set".
  status: s.optional(s.oneName(taskStates, "TASK_STATE_UNSPECIFIED")),
  pageSize: s.optional(s.integer(1, 100)),
  pageToken: s.optional(s.blank),
  historyLength: s.optional(historyLength),
  statusTimestampAfter: s.optional(s.timestamp),
  includeArtifacts: s.optional(s.boolean),
});

export const listTasksResponseSchema: Schema<ListTasksResponse> = s.object<ListTasksResponse>({
  tasks: s.required(s.list(taskSchema), s.none),
  nextPageToken: s.required(s.string, s.nothing),
  pageSize: s.required(s.integer(0), () => 0),
  totalSize: s.required(s.integer(0), () => 0),
});

export const cancelTaskRequestSchema: Schema<CancelTaskRequest> = s.object<CancelTaskRequest>({
  ...ofTask,
  metadata: s.optional(s.struct),
});

export const subscribeToTaskRequestSchema: Schema<SubscribeToTaskRequest> = s.object<SubscribeToTaskRequest>(ofTask);

const pushConfigKey: Schema<GetTaskPushNotificationConfigRequest> = s.object<GetTaskPushNotificationConfigRequest>({
  tenant: s.optional(s.optionalId),
  taskId: s.required(s.id),
  id: s.required(s.id),
});

export const getTaskPushNotificationConfigRequestSchema: Schema<GetTaskPushNotificationConfigRequest> = pushConfigKey;
export const deleteTaskPushNotificationConfigRequestSchema: Schema<DeleteTaskPushNotificationConfigRequest> =
  pushConfigKey;

export const listTaskPushNotificationConfigsRequestSchema: Schema<ListTaskPushNotificationConfigsRequest> =
  s.object<ListTaskPushNotificationConfigsRequest>({
    tenant: s.optional(s.optionalId),
    taskId: s.required(s.id),
    pageSize: s.optional(s.integer(0)),
    pageToken: s.optional(s.blank),
  });

export const listTaskPushNotificationConfigsResponseSchema: Schema<ListTaskPushNotificationConfigsResponse> =
  s.object<ListTaskPushNotificationConfigsResponse>({
    configs: s.optional(s.list(taskPushNotificationConfigSchema)),
    nextPageToken: s.optional(s.blank),
  });

export const getExtendedAgentCardRequestSchema: Schema<GetExtendedAgentCardRequest> =
  s.object<GetExtendedAgentCardRequest>({ tenant: s.optional(s.optionalId) });

export const emptySchema: Schema<Empty> = s.object<Empty>({});

/** Messages of a card. Texts stay unchanged, empty ones too, because a signature covers them (A2A 1.0 §8.4.1). */

/** Accepts members of an unknown kind, so that cards of later releases stay readable. */
const oneOrUnknown: OneOf = { none: {} };

const scopes: Schema<Readonly<Record<string, string>>> = s.record(s.string);
const noScopes = (): Readonly<Record<string, string>> => ({});

export const agentInterfaceSchema: Schema<AgentInterface> = s.object<AgentInterface>({
  url: s.required(s.filled),
  protocolBinding: s.required(s.filled),
  tenant: s.optional(s.string),
  protocolVersion: s.required(s.filled),
});

export const agentProviderSchema: Schema<AgentProvider> = s.object<AgentProvider>({
  url: s.required(s.filled, s.nothing),
  organization: s.required(s.filled, s.nothing),
});

export const agentExtensionSchema: Schema<AgentExtension> = s.object<AgentExtension>({
  uri: s.optional(s.string),
  description: s.optional(s.string),
  required: s.optional(s.boolean),
  params: s.optional(s.struct),
});

export const agentCapabilitiesSchema: Schema<AgentCapabilities> = s.object<AgentCapabilities>({
  streaming: s.optional(s.boolean),
  pushNotifications: s.optional(s.boolean),
  extensions: s.optional(s.list(agentExtensionSchema)),
  extendedAgentCard: s.optional(s.boolean),
});

export const stringListSchema: Schema<StringList> = s.object<StringList>({ list: s.optional(s.strings) });

export const securityRequirementSchema: Schema<SecurityRequirement> = s.object<SecurityRequirement>({
  schemes: s.optional(s.record(stringListSchema)),
});

export const agentSkillSchema: Schema<AgentSkill> = s.object<AgentSkill>({
  id: s.required(s.filled),
  name: s.required(s.filled, s.nothing),
  description: s.required(s.filled, s.nothing),
  tags: s.required(s.strings, s.none),
  examples: s.optional(s.strings),
  inputModes: s.optional(s.strings),
  outputModes: s.optional(s.strings),
  securityRequirements: s.optional(s.list(securityRequirementSchema)),
});

export const agentCardSignatureSchema: Schema<AgentCardSignature> = s.object<AgentCardSignature>({
  protected: s.required(s.filled),
  signature: s.required(s.filled),
  header: s.optional(s.struct),
});

export const apiKeySecuritySchemeSchema: Schema<APIKeySecurityScheme> = s.object<APIKeySecurityScheme>({
  description: s.optional(s.string),
  location: s.required(s.filled),
  name: s.required(s.filled),
});

export const httpAuthSecuritySchemeSchema: Schema<HTTPAuthSecurityScheme> = s.object<HTTPAuthSecurityScheme>({
  description: s.optional(s.string),
  scheme: s.required(s.filled),
  bearerFormat: s.optional(s.string),
});

export const authorizationCodeOAuthFlowSchema: Schema<AuthorizationCodeOAuthFlow> =
  s.object<AuthorizationCodeOAuthFlow>({
    authorizationUrl: s.required(s.filled),
    tokenUrl: s.required(s.filled),
    refreshUrl: s.optional(s.string),
    scopes: s.required(scopes, noScopes),
    pkceRequired: s.optional(s.boolean),
  });

export const clientCredentialsOAuthFlowSchema: Schema<ClientCredentialsOAuthFlow> =
  s.object<ClientCredentialsOAuthFlow>({
    tokenUrl: s.required(s.filled),
    refreshUrl: s.optional(s.string),
    scopes: s.required(scopes, noScopes),
  });

export const implicitOAuthFlowSchema: Schema<ImplicitOAuthFlow> = s.object<ImplicitOAuthFlow>({
  authorizationUrl: s.optional(s.string),
  refreshUrl: s.optional(s.string),
  scopes: s.optional(scopes),
});

export const passwordOAuthFlowSchema: Schema<PasswordOAuthFlow> = s.object<PasswordOAuthFlow>({
  tokenUrl: s.optional(s.string),
  refreshUrl: s.optional(s.string),
  scopes: s.optional(scopes),
});

export const deviceCodeOAuthFlowSchema: Schema<DeviceCodeOAuthFlow> = s.object<DeviceCodeOAuthFlow>({
  deviceAuthorizationUrl: s.required(s.filled),
  tokenUrl: s.required(s.filled),
  refreshUrl: s.optional(s.string),
  scopes: s.required(scopes, noScopes),
});

export const oAuthFlowsSchema: Schema<OAuthFlows> = s.union<OAuthFlows>(
  {
    authorizationCode: s.optional(authorizationCodeOAuthFlowSchema),
    clientCredentials: s.optional(clientCredentialsOAuthFlowSchema),
    implicit: s.optional(implicitOAuthFlowSchema),
    password: s.optional(passwordOAuthFlowSchema),
    deviceCode: s.optional(deviceCodeOAuthFlowSchema),
  },
  oneOrUnknown,
);

export const oAuth2SecuritySchemeSchema: Schema<OAuth2SecurityScheme> = s.object<OAuth2SecurityScheme>({
  description: s.optional(s.string),
  flows: s.required(oAuthFlowsSchema),
  oauth2MetadataUrl: s.optional(s.string),
});

export const openIdConnectSecuritySchemeSchema: Schema<OpenIdConnectSecurityScheme> =
  s.object<OpenIdConnectSecurityScheme>({
    description: s.optional(s.string),
    openIdConnectUrl: s.required(s.filled),
  });

export const mutualTlsSecuritySchemeSchema: Schema<MutualTlsSecurityScheme> = s.object<MutualTlsSecurityScheme>({
  description: s.optional(s.string),
});

export const securitySchemeSchema: Schema<SecurityScheme> = s.union<SecurityScheme>(
  {
    apiKeySecurityScheme: s.optional(apiKeySecuritySchemeSchema),
    httpAuthSecurityScheme: s.optional(httpAuthSecuritySchemeSchema),
    oauth2SecurityScheme: s.optional(oAuth2SecuritySchemeSchema),
    openIdConnectSecurityScheme: s.optional(openIdConnectSecuritySchemeSchema),
    mtlsSecurityScheme: s.optional(mutualTlsSecuritySchemeSchema),
  },
  oneOrUnknown,
);

export const agentCardSchema: Schema<AgentCard> = s.object<AgentCard>({
  name: s.required(s.filled, s.nothing),
  description: s.required(s.filled, s.nothing),
  supportedInterfaces: s.required(s.list(agentInterfaceSchema, "must hold at least one interface")),
  provider: s.optional(agentProviderSchema),
  version: s.required(s.filled, s.nothing),
  documentationUrl: s.optional(s.string),
  capabilities: s.required(agentCapabilitiesSchema, () => ({})),
  securitySchemes: s.optional(s.record(securitySchemeSchema)),
  securityRequirements: s.optional(s.list(securityRequirementSchema)),
  defaultInputModes: s.required(s.strings, s.none),
  defaultOutputModes: s.required(s.strings, s.none),
  skills: s.required(s.list(agentSkillSchema), s.none),
  signatures: s.optional(s.list(agentCardSignatureSchema)),
  iconUrl: s.optional(s.string),
});
