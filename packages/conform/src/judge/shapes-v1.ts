import {
  address,
  any,
  bytes,
  can,
  filled,
  flag,
  int,
  list,
  map,
  must,
  object,
  oneOf,
  some,
  text,
  timestamp,
  url,
  type Kind,
  type Shape,
} from "./shape.ts";

/**
 * What the answers of A2A 1.0 look like (§4, `a2a.proto`), as a judge reads them: types, required fields, one of several,
 * camelCase. Written apart from the server's own schemas, so that one mistake does not hide the other.
 */

const state: Kind = oneOf(
  ...["SUBMITTED", "WORKING", "COMPLETED", "FAILED", "CANCELED", "INPUT_REQUIRED", "REJECTED", "AUTH_REQUIRED"].map(
    (name) => `TASK_STATE_${name}`,
  ),
);

const flow = { refreshUrl: can(text), scopes: { kind: text, map: true } };

export const shapesV1: Readonly<Record<string, Shape>> = {
  Task: {
    fields: {
      id: must(filled),
      contextId: can(text),
      status: must("TaskStatus"),
      artifacts: list("Artifact"),
      history: list("Message"),
      metadata: can(object),
    },
  },
  TaskStatus: { fields: { state: must(state), message: can("Message"), timestamp: can(timestamp) } },
  Message: {
    fields: {
      messageId: must(filled),
      contextId: can(text),
      taskId: can(text),
      role: must(oneOf("ROLE_USER", "ROLE_AGENT")),
      parts: some("Part"),
      metadata: can(object),
      extensions: list(text),
      referenceTaskIds: list(text),
    },
  },
  Part: {
    fields: {
      text: can(text),
      raw: can(bytes),
      url: can(text),
      data: can(any),
      metadata: can(object),
      filename: can(text),
      mediaType: can(text),
    },
    oneOf: ["text", "raw", "url", "data"],
  },
  Artifact: {
    fields: {
      artifactId: must(filled),
      name: can(text),
      description: can(text),
      parts: some("Part"),
      metadata: can(object),
      extensions: list(text),
    },
  },
  TaskStatusUpdateEvent: {
    fields: { taskId: must(filled), contextId: must(filled), status: must("TaskStatus"), metadata: can(object) },
  },
  TaskArtifactUpdateEvent: {
    fields: {
      taskId: must(filled),
      contextId: must(filled),
      artifact: must("Artifact"),
      append: can(flag),
      lastChunk: can(flag),
      metadata: can(object),
    },
  },
  SendMessageResponse: { fields: { task: can("Task"), message: can("Message") }, oneOf: ["task", "message"] },
  StreamResponse: {
    fields: {
      task: can("Task"),
      message: can("Message"),
      statusUpdate: can("TaskStatusUpdateEvent"),
      artifactUpdate: can("TaskArtifactUpdateEvent"),
    },
    oneOf: ["task", "message", "statusUpdate", "artifactUpdate"],
  },
  ListTasksResponse: {
    fields: {
      tasks: { ...some("Task"), mayBeEmpty: true },
      nextPageToken: must(text),
      pageSize: must(int),
      totalSize: must(int),
    },
  },
  TaskPushNotificationConfig: {
    fields: {
      tenant: can(text),
      id: can(text),
      taskId: can(text),
      url: must(url),
      token: can(text),
      authentication: can("AuthenticationInfo"),
    },
  },
  AuthenticationInfo: { fields: { scheme: must(filled), credentials: can(text) } },
  ListTaskPushNotificationConfigsResponse: {
    fields: { configs: list("TaskPushNotificationConfig"), nextPageToken: can(text) },
  },
  AgentCard: {
    fields: {
      name: must(filled),
      description: must(filled),
      supportedInterfaces: some("AgentInterface"),
      provider: can("AgentProvider"),
      version: must(filled),
      documentationUrl: can(url),
      capabilities: must("AgentCapabilities"),
      securitySchemes: map("SecurityScheme"),
      securityRequirements: list("SecurityRequirement"),
      defaultInputModes: some(filled),
      defaultOutputModes: some(filled),
      skills: { ...some("AgentSkill"), mayBeEmpty: true },
      signatures: list("AgentCardSignature"),
      iconUrl: can(url),
    },
  },
  AgentInterface: {
    fields: {
      url: must(address),
      protocolBinding: must(filled),
      tenant: can(text),
      protocolVersion: must(filled),
    },
  },
  AgentProvider: { fields: { url: must(url), organization: must(filled) } },
  AgentCapabilities: {
    fields: {
      streaming: can(flag),
      pushNotifications: can(flag),
      extensions: list("AgentExtension"),
      extendedAgentCard: can(flag),
    },
  },
  AgentExtension: { fields: { uri: must(filled), description: can(text), required: can(flag), params: can(object) } },
  AgentSkill: {
    fields: {
      id: must(filled),
      name: must(filled),
      description: must(filled),
      tags: { ...some(text), mayBeEmpty: true },
      examples: list(text),
      inputModes: list(text),
      outputModes: list(text),
      securityRequirements: list("SecurityRequirement"),
    },
  },
  AgentCardSignature: { fields: { protected: must(filled), signature: must(filled), header: can(object) } },
  SecurityRequirement: { fields: { schemes: map("StringList") } },
  StringList: { fields: { list: list(text) } },
  SecurityScheme: {
    fields: {
      apiKeySecurityScheme: can("APIKeySecurityScheme"),
      httpAuthSecurityScheme: can("HTTPAuthSecurityScheme"),
      oauth2SecurityScheme: can("OAuth2SecurityScheme"),
      openIdConnectSecurityScheme: can("OpenIdConnectSecurityScheme"),
      mtlsSecurityScheme: can("MutualTlsSecurityScheme"),
    },
    oneOf: [
      "apiKeySecurityScheme",
      "httpAuthSecurityScheme",
      "oauth2SecurityScheme",
      "openIdConnectSecurityScheme",
      "mtlsSecurityScheme",
    ],
  },
  APIKeySecurityScheme: {
    fields: { description: can(text), location: must(oneOf("query", "header", "cookie")), name: must(filled) },
  },
  HTTPAuthSecurityScheme: { fields: { description: can(text), scheme: must(filled), bearerFormat: can(text) } },
  OAuth2SecurityScheme: {
    fields: { description: can(text), flows: must("OAuthFlows"), oauth2MetadataUrl: can(url) },
  },
  OpenIdConnectSecurityScheme: { fields: { description: can(text), openIdConnectUrl: must(url) } },
  MutualTlsSecurityScheme: { fields: { description: can(text) } },
  OAuthFlows: {
    fields: {
      authorizationCode: can("AuthorizationCodeOAuthFlow"),
      clientCredentials: can("ClientCredentialsOAuthFlow"),
      implicit: can(object),
      password: can(object),
      deviceCode: can("DeviceCodeOAuthFlow"),
    },
    oneOf: ["authorizationCode", "clientCredentials", "implicit", "password", "deviceCode"],
  },
  AuthorizationCodeOAuthFlow: {
    fields: { authorizationUrl: must(url), tokenUrl: must(url), ...flow, pkceRequired: can(flag) },
  },
  ClientCredentialsOAuthFlow: { fields: { tokenUrl: must(url), ...flow } },
  DeviceCodeOAuthFlow: { fields: { deviceAuthorizationUrl: must(url), tokenUrl: must(url), ...flow } },
};
