/**
 * Shapes by name, each as text: `id: nonEmpty, name?: text, parts: Part[1+]`. `oneof(…)` at the beginning lists members of which exactly
 * one is set, `kind(…)` the shapes by the value of `kind`. A type is a scalar, a shape, or texts separated by `|`.
 */
export type ShapeTable = Readonly<Record<string, string>>;

/** Those that are the same in the proto of 1.0 and in that of 0.3. */
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

/**
 * The answers of A2A 1.0 (§4, `a2a.proto`). Written apart from the server's own schemas, so that one mistake does not hide the
 * other.
 */
export const shapesV1: ShapeTable = {
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
const protoStates = [
  "SUBMITTED",
  "WORKING",
  "COMPLETED",
  "FAILED",
  "CANCELLED",
  "INPUT_REQUIRED",
  "REJECTED",
  "AUTH_REQUIRED",
]
  .map((name) => `TASK_STATE_${name}`)
  .join("|");

/** The answers of A2A 0.3 over JSON-RPC, with `kind` (its `types.ts`). */
export const shapesV03: ShapeTable = {
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

/** The answers of A2A 0.3 over REST and gRPC, in ProtoJSON (its `a2a.proto`). */
export const shapesV03Proto: ShapeTable = {
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
