import {
  bytes,
  can,
  filled,
  flag,
  list,
  map,
  must,
  object,
  oneOf,
  some,
  text,
  timestamp,
  url,
  type Shape,
} from "./shape.ts";

/**
 * What the answers of A2A 0.3 look like: the JSON of its JSON-RPC with `kind` (its `types.ts`), and under `proto` the
 * ProtoJSON of its REST and gRPC (its `a2a.proto`).
 */

const states = [
  "submitted",
  "working",
  "completed",
  "failed",
  "canceled",
  "input-required",
  "rejected",
  "auth-required",
  "unknown",
];
const state = oneOf(...states);
const protoStates = [
  "SUBMITTED",
  "WORKING",
  "COMPLETED",
  "FAILED",
  "CANCELLED",
  "INPUT_REQUIRED",
  "REJECTED",
  "AUTH_REQUIRED",
];
const protoState = oneOf(...protoStates.map((name) => `TASK_STATE_${name}`));

const anyTime = (value: unknown): string | undefined =>
  typeof value === "string" && !Number.isNaN(Date.parse(value)) ? undefined : "a time of ISO 8601";

const card: Shape = {
  fields: {
    protocolVersion: must(filled),
    name: must(filled),
    description: must(filled),
    url: must(url),
    preferredTransport: can(filled),
    additionalInterfaces: list("0.3/AgentInterface"),
    iconUrl: can(url),
    provider: can("AgentProvider"),
    version: must(filled),
    documentationUrl: can(url),
    capabilities: must("AgentCapabilities"),
    securitySchemes: map(object),
    security: list(object),
    defaultInputModes: some(filled),
    defaultOutputModes: some(filled),
    skills: { ...some("0.3/AgentSkill"), mayBeEmpty: true },
    supportsAuthenticatedExtendedCard: can(flag),
    signatures: list("AgentCardSignature"),
  },
};

export const shapesV03: Readonly<Record<string, Shape>> = {
  "0.3/AgentCard": card,
  "0.3/AgentInterface": { fields: { url: must(filled), transport: must(filled) } },
  "0.3/AgentSkill": {
    fields: {
      id: must(filled),
      name: must(filled),
      description: must(filled),
      tags: { ...some(text), mayBeEmpty: true },
      examples: list(text),
      inputModes: list(text),
      outputModes: list(text),
      security: list(object),
    },
  },

  "0.3/Task": {
    fields: {
      kind: must(oneOf("task")),
      id: must(filled),
      contextId: must(filled),
      status: must("0.3/TaskStatus"),
      artifacts: list("0.3/Artifact"),
      history: list("0.3/Message"),
      metadata: can(object),
    },
  },
  "0.3/TaskStatus": { fields: { state: must(state), message: can("0.3/Message"), timestamp: can(anyTime) } },
  "0.3/Message": {
    fields: {
      kind: must(oneOf("message")),
      messageId: must(filled),
      contextId: can(text),
      taskId: can(text),
      role: must(oneOf("user", "agent")),
      parts: some("0.3/Part"),
      metadata: can(object),
      extensions: list(text),
      referenceTaskIds: list(text),
    },
  },
  "0.3/Part": { fields: {}, byKind: { text: "0.3/TextPart", file: "0.3/FilePart", data: "0.3/DataPart" } },
  "0.3/TextPart": { fields: { text: must(text), metadata: can(object) } },
  "0.3/FilePart": { fields: { file: must("0.3/File"), metadata: can(object) } },
  "0.3/File": {
    fields: { bytes: can(bytes), uri: can(text), name: can(text), mimeType: can(text) },
    oneOf: ["bytes", "uri"],
  },
  "0.3/DataPart": { fields: { data: must(object), metadata: can(object) } },
  "0.3/Artifact": {
    fields: {
      artifactId: must(filled),
      name: can(text),
      description: can(text),
      parts: some("0.3/Part"),
      metadata: can(object),
      extensions: list(text),
    },
  },
  "0.3/TaskStatusUpdateEvent": {
    fields: {
      kind: must(oneOf("status-update")),
      taskId: must(filled),
      contextId: must(filled),
      status: must("0.3/TaskStatus"),
      final: must(flag),
      metadata: can(object),
    },
  },
  "0.3/TaskArtifactUpdateEvent": {
    fields: {
      kind: must(oneOf("artifact-update")),
      taskId: must(filled),
      contextId: must(filled),
      artifact: must("0.3/Artifact"),
      append: can(flag),
      lastChunk: can(flag),
      metadata: can(object),
    },
  },
  "0.3/SendMessageResponse": { fields: {}, byKind: { task: "0.3/Task", message: "0.3/Message" } },
  "0.3/StreamResponse": {
    fields: {},
    byKind: {
      task: "0.3/Task",
      message: "0.3/Message",
      "status-update": "0.3/TaskStatusUpdateEvent",
      "artifact-update": "0.3/TaskArtifactUpdateEvent",
    },
  },

  "0.3/proto/Task": {
    fields: {
      id: must(filled),
      contextId: must(filled),
      status: must("0.3/proto/TaskStatus"),
      artifacts: list("0.3/proto/Artifact"),
      history: list("0.3/proto/Message"),
      metadata: can(object),
    },
  },
  "0.3/proto/TaskStatus": {
    fields: { state: must(protoState), message: can("0.3/proto/Message"), timestamp: can(timestamp) },
  },
  "0.3/proto/Message": {
    fields: {
      messageId: must(filled),
      contextId: can(text),
      taskId: can(text),
      role: must(oneOf("ROLE_USER", "ROLE_AGENT")),
      content: some("0.3/proto/Part"),
      metadata: can(object),
      extensions: list(text),
    },
  },
  "0.3/proto/Part": {
    fields: { text: can(text), file: can("0.3/proto/File"), data: can("0.3/proto/Data"), metadata: can(object) },
    oneOf: ["text", "file", "data"],
  },
  "0.3/proto/File": {
    fields: { fileWithBytes: can(bytes), fileWithUri: can(text), mimeType: can(text), name: can(text) },
    oneOf: ["fileWithBytes", "fileWithUri"],
  },
  "0.3/proto/Data": { fields: { data: must(object) } },
  "0.3/proto/Artifact": {
    fields: {
      artifactId: must(filled),
      name: can(text),
      description: can(text),
      parts: some("0.3/proto/Part"),
      metadata: can(object),
      extensions: list(text),
    },
  },
  "0.3/proto/TaskStatusUpdateEvent": {
    fields: {
      taskId: must(filled),
      contextId: must(filled),
      status: must("0.3/proto/TaskStatus"),
      final: can(flag),
      metadata: can(object),
    },
  },
  "0.3/proto/TaskArtifactUpdateEvent": {
    fields: {
      taskId: must(filled),
      contextId: must(filled),
      artifact: must("0.3/proto/Artifact"),
      append: can(flag),
      lastChunk: can(flag),
      metadata: can(object),
    },
  },
  "0.3/proto/SendMessageResponse": {
    fields: { task: can("0.3/proto/Task"), message: can("0.3/proto/Message") },
    oneOf: ["task", "message"],
  },
  "0.3/proto/StreamResponse": {
    fields: {
      task: can("0.3/proto/Task"),
      message: can("0.3/proto/Message"),
      statusUpdate: can("0.3/proto/TaskStatusUpdateEvent"),
      artifactUpdate: can("0.3/proto/TaskArtifactUpdateEvent"),
    },
    oneOf: ["task", "message", "statusUpdate", "artifactUpdate"],
  },
};
