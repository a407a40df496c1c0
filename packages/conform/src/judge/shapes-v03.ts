import {
  bytes,
  optional,
  nonEmpty,
  flag,
  optionalList,
  optionalMap,
  required,
  object,
  oneOf,
  requiredList,
  text,
  timestamp,
  url,
  type Shape,
} from "./shape.ts";
import { artifactShape, artifactUpdateFields, protoShapes } from "./shapes-common.ts";

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
    protocolVersion: required(nonEmpty),
    name: required(nonEmpty),
    description: required(nonEmpty),
    url: required(url),
    preferredTransport: optional(nonEmpty),
    additionalInterfaces: optionalList("0.3/AgentInterface"),
    iconUrl: optional(url),
    provider: optional("AgentProvider"),
    version: required(nonEmpty),
    documentationUrl: optional(url),
    capabilities: required("AgentCapabilities"),
    securitySchemes: optionalMap(object),
    security: optionalList(object),
    defaultInputModes: requiredList(nonEmpty),
    defaultOutputModes: requiredList(nonEmpty),
    skills: { ...requiredList("0.3/AgentSkill"), mayBeEmpty: true },
    supportsAuthenticatedExtendedCard: optional(flag),
    signatures: optionalList("AgentCardSignature"),
  },
};

export const shapesV03: Readonly<Record<string, Shape>> = {
  "0.3/AgentCard": card,
  "0.3/AgentInterface": { fields: { url: required(nonEmpty), transport: required(nonEmpty) } },
  "0.3/AgentSkill": {
    fields: {
      id: required(nonEmpty),
      name: required(nonEmpty),
      description: required(nonEmpty),
      tags: { ...requiredList(text), mayBeEmpty: true },
      examples: optionalList(text),
      inputModes: optionalList(text),
      outputModes: optionalList(text),
      security: optionalList(object),
    },
  },

  "0.3/Task": {
    fields: {
      kind: required(oneOf("task")),
      id: required(nonEmpty),
      contextId: required(nonEmpty),
      status: required("0.3/TaskStatus"),
      artifacts: optionalList("0.3/Artifact"),
      history: optionalList("0.3/Message"),
      metadata: optional(object),
    },
  },
  "0.3/TaskStatus": {
    fields: { state: required(state), message: optional("0.3/Message"), timestamp: optional(anyTime) },
  },
  "0.3/Message": {
    fields: {
      kind: required(oneOf("message")),
      messageId: required(nonEmpty),
      contextId: optional(text),
      taskId: optional(text),
      role: required(oneOf("user", "agent")),
      parts: requiredList("0.3/Part"),
      metadata: optional(object),
      extensions: optionalList(text),
      referenceTaskIds: optionalList(text),
    },
  },
  "0.3/Part": { fields: {}, byKind: { text: "0.3/TextPart", file: "0.3/FilePart", data: "0.3/DataPart" } },
  "0.3/TextPart": { fields: { text: required(text), metadata: optional(object) } },
  "0.3/FilePart": { fields: { file: required("0.3/File"), metadata: optional(object) } },
  "0.3/File": {
    fields: { bytes: optional(bytes), uri: optional(text), name: optional(text), mimeType: optional(text) },
    oneOf: ["bytes", "uri"],
  },
  "0.3/DataPart": { fields: { data: required(object), metadata: optional(object) } },
  "0.3/Artifact": artifactShape("0.3/"),
  "0.3/TaskStatusUpdateEvent": {
    fields: {
      kind: required(oneOf("status-update")),
      taskId: required(nonEmpty),
      contextId: required(nonEmpty),
      status: required("0.3/TaskStatus"),
      final: required(flag),
      metadata: optional(object),
    },
  },
  "0.3/TaskArtifactUpdateEvent": {
    fields: { kind: required(oneOf("artifact-update")), ...artifactUpdateFields("0.3/") },
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

  ...protoShapes("0.3/proto/"),
  "0.3/proto/Task": {
    fields: {
      id: required(nonEmpty),
      contextId: required(nonEmpty),
      status: required("0.3/proto/TaskStatus"),
      artifacts: optionalList("0.3/proto/Artifact"),
      history: optionalList("0.3/proto/Message"),
      metadata: optional(object),
    },
  },
  "0.3/proto/TaskStatus": {
    fields: { state: required(protoState), message: optional("0.3/proto/Message"), timestamp: optional(timestamp) },
  },
  "0.3/proto/Message": {
    fields: {
      messageId: required(nonEmpty),
      contextId: optional(text),
      taskId: optional(text),
      role: required(oneOf("ROLE_USER", "ROLE_AGENT")),
      content: requiredList("0.3/proto/Part"),
      metadata: optional(object),
      extensions: optionalList(text),
    },
  },
  "0.3/proto/Part": {
    fields: {
      text: optional(text),
      file: optional("0.3/proto/File"),
      data: optional("0.3/proto/Data"),
      metadata: optional(object),
    },
    oneOf: ["text", "file", "data"],
  },
  "0.3/proto/File": {
    fields: {
      fileWithBytes: optional(bytes),
      fileWithUri: optional(text),
      mimeType: optional(text),
      name: optional(text),
    },
    oneOf: ["fileWithBytes", "fileWithUri"],
  },
  "0.3/proto/Data": { fields: { data: required(object) } },
  "0.3/proto/TaskStatusUpdateEvent": {
    fields: {
      taskId: required(nonEmpty),
      contextId: required(nonEmpty),
      status: required("0.3/proto/TaskStatus"),
      final: optional(flag),
      metadata: optional(object),
    },
  },
};
