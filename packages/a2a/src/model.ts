/**
 * The data model of A2A 1.0: its JSON as types, the schemas that check it, guards, builders, and the fold of a task's log.
 * @packageDocumentation
 */

// Messages, tasks and what the operations ask and answer (A2A 1.0 §4.1, §3.1).
export type {
  JsonValue,
  JsonObject,
  JsonLike,
  JsonObjectLike,
  Timestamp,
  TaskState,
  Role,
  TextPart,
  RawPart,
  UrlPart,
  DataPart,
  Part,
  Message,
  Artifact,
  TaskStatus,
  Task,
  TaskStatusUpdateEvent,
  TaskArtifactUpdateEvent,
  StreamResponse,
  SendMessageResponse,
  AuthenticationInfo,
  TaskPushNotificationConfig,
  SendMessageConfiguration,
  SendMessageRequest,
  GetTaskRequest,
  ListTasksRequest,
  ListTasksResponse,
  CancelTaskRequest,
  SubscribeToTaskRequest,
  GetTaskPushNotificationConfigRequest,
  DeleteTaskPushNotificationConfigRequest,
  ListTaskPushNotificationConfigsRequest,
  ListTaskPushNotificationConfigsResponse,
  GetExtendedAgentCardRequest,
  Empty,
} from "./model/index.ts";

// Agent cards (§4.4) and security schemes (§4.5).
export type {
  AgentInterface,
  AgentProvider,
  AgentExtension,
  AgentCapabilities,
  StringList,
  SecurityRequirement,
  AgentSkill,
  AgentCardSignature,
  APIKeySecurityScheme,
  HTTPAuthSecurityScheme,
  AuthorizationCodeOAuthFlow,
  ClientCredentialsOAuthFlow,
  ImplicitOAuthFlow,
  PasswordOAuthFlow,
  DeviceCodeOAuthFlow,
  OAuthFlows,
  OAuth2SecurityScheme,
  OpenIdConnectSecurityScheme,
  MutualTlsSecurityScheme,
  SecurityScheme,
  AgentCard,
} from "./model/index.ts";

// What the draft of 1.1 adds.
export {
  type Generation,
  type GetTaskRequestDraft,
  type SendMessageConfigurationDraft,
  hasGenerations,
  generationOf,
  spanOf,
  timelineOf,
  type TimelineEntry,
} from "./model/index.ts";

// Errors (§3.3.2, §5.4).
export {
  type WireErrorCode,
  wireErrors,
  wireErrorCodes,
  codeOfStatus,
  wireStatuses,
  type ClientErrorCode,
  type A2AErrorCode,
  reasonOf,
  isWireErrorCode,
  type FieldViolation,
  type A2AErrorOptions,
  type SentAs,
  A2AError,
  hasCode,
  invalidParams,
  checkOptions,
  withFields,
  toA2AError,
} from "./model/index.ts";

// The states of a task (§4.1.3).
export {
  type StateKind,
  stateKinds,
  taskStates,
  isTaskState,
  isTerminal,
  isInterrupted,
  mayMove,
} from "./model/index.ts";

// The log of a task, and its fold.
export {
  type LogEvent,
  type RecordKind,
  type Actor,
  type NewRecord,
  type LogRecord,
  placed,
  eventOf,
} from "./model/index.ts";
export {
  type FoldProblem,
  type ApplyOptions,
  type FoldOptions,
  type SnapshotOptions,
  isHistory,
  countsInGeneration,
  ArtifactLedger,
  TaskFold,
  reduce,
} from "./model/index.ts";

// Schemas: they check what comes from outside.
export { check, jsonName, maxViolations, type Checked, type CheckMode, type Schema } from "./model/index.ts";
export {
  taskStateSchema,
  roleSchema,
  partSchema,
  messageSchema,
  artifactSchema,
  taskStatusSchema,
  taskSchema,
  taskStatusUpdateEventSchema,
  taskArtifactUpdateEventSchema,
  streamResponseSchema,
  sendMessageResponseSchema,
  authenticationInfoSchema,
  taskPushNotificationConfigSchema,
  sendMessageConfigurationSchema,
  sendMessageRequestSchema,
  getTaskRequestSchema,
  listTasksRequestSchema,
  listTasksResponseSchema,
  cancelTaskRequestSchema,
  subscribeToTaskRequestSchema,
  getTaskPushNotificationConfigRequestSchema,
  deleteTaskPushNotificationConfigRequestSchema,
  listTaskPushNotificationConfigsRequestSchema,
  listTaskPushNotificationConfigsResponseSchema,
  getExtendedAgentCardRequestSchema,
  emptySchema,
} from "./model/index.ts";
export {
  agentInterfaceSchema,
  agentProviderSchema,
  agentExtensionSchema,
  agentCapabilitiesSchema,
  stringListSchema,
  securityRequirementSchema,
  agentSkillSchema,
  agentCardSignatureSchema,
  apiKeySecuritySchemeSchema,
  httpAuthSecuritySchemeSchema,
  authorizationCodeOAuthFlowSchema,
  clientCredentialsOAuthFlowSchema,
  implicitOAuthFlowSchema,
  passwordOAuthFlowSchema,
  deviceCodeOAuthFlowSchema,
  oAuthFlowsSchema,
  oAuth2SecuritySchemeSchema,
  openIdConnectSecuritySchemeSchema,
  mutualTlsSecuritySchemeSchema,
  securitySchemeSchema,
  agentCardSchema,
} from "./model/index.ts";

// Builders.
export {
  type PartOptions,
  type FileSource,
  type Content,
  text,
  data,
  file,
  partsOf,
  type MessageOptions,
  message,
  artifact,
  toBase64,
  fromBase64,
} from "./model/index.ts";

// Guards and readers of parts.
export { isTextPart, isRawPart, isUrlPart, isFilePart, isDataPart, textOf, bytesOf } from "./model/index.ts";
export { contentHash } from "./model/index.ts";
export type { Bytes } from "./base/index.ts";
