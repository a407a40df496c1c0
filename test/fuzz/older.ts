import type { OperationName } from "@parley/a2a/protocol";
import type { Field, Shape } from "./fields.ts";

/** Valid A2A 0.3 requests with all of their fields, and the places to damage in them. */

/** The shape of a value. `metadata` and `data` may have any members. */
export function shapeOf(sample: unknown, name = ""): Shape {
  if (typeof sample === "string") return { kind: "string", sample };
  if (typeof sample === "number") return { kind: "number", sample };
  if (typeof sample === "boolean") return { kind: "boolean", sample };
  if (Array.isArray(sample)) return { kind: "list", items: sample.map((item) => shapeOf(item)) };
  if (name === "metadata" || (name === "data" && !Object.hasOwn(sample as object, "data"))) {
    return { kind: "json", sample };
  }
  const fields = Object.entries(sample as object).map(
    ([key, value]) => [key, { shape: shapeOf(value, key), optional: optional.has(key) }] as const,
  );
  return { kind: "object", fields: new Map<string, Field>(fields) };
}

/** Optional fields. A damaged request has only those that are on the path to the damage. */
const optional: ReadonlySet<string> = new Set([
  "acceptedOutputModes",
  "authentication",
  "configuration",
  "contextId",
  "credentials",
  "extensions",
  "filename",
  "historyLength",
  "metadata",
  "mimeType",
  "name",
  "pushNotification",
  "pushNotificationConfig",
  "referenceTaskIds",
  "taskId",
  "token",
]);

const push = {
  id: "p",
  url: "https://hook.example",
  token: "t",
  authentication: { schemes: ["Bearer"], credentials: "c" },
};
const ids = { contextId: "c", extensions: ["urn:x"], referenceTaskIds: ["t"], metadata: { a: 1 } };

const message = {
  kind: "message",
  messageId: "m",
  role: "user",
  parts: [
    { kind: "text", text: "hello", metadata: { a: 1 } },
    { kind: "file", file: { bytes: "aGk=", name: "a.txt", mimeType: "text/plain" } },
    { kind: "file", file: { uri: "https://files.example/a.txt" } },
    { kind: "data", data: { a: [1, null] } },
  ],
  ...ids,
};

const protoMessage = {
  messageId: "m",
  role: "ROLE_USER",
  content: [
    { text: "hello", metadata: { a: 1 } },
    { file: { fileWithBytes: "aGk=", mimeType: "text/plain" } },
    { file: { fileWithUri: "https://files.example/a.txt" } },
    { data: { data: { a: [1, null] } } },
  ],
  contextId: "c",
  extensions: ["urn:x"],
  metadata: { a: 1 },
};

/** Without `blocking`, because a damaged request must be rejected before it has an effect. */
const configuration = { acceptedOutputModes: ["text/plain"], historyLength: 1 };

/** Parameters by JSON-RPC method. */
export const params: Readonly<Record<string, object>> = {
  "message/send": {
    message,
    configuration: { ...configuration, pushNotificationConfig: push, blocking: true },
    metadata: {},
  },
  "message/stream": { message, configuration, metadata: {} },
  "tasks/get": { id: "t", historyLength: 1, metadata: {} },
  "tasks/cancel": { id: "t", metadata: {} },
  "tasks/resubscribe": { id: "t", metadata: {} },
  "tasks/pushNotificationConfig/set": { taskId: "t", pushNotificationConfig: push },
  "tasks/pushNotificationConfig/get": { id: "t", pushNotificationConfigId: "p", metadata: {} },
  "tasks/pushNotificationConfig/list": { id: "t", metadata: {} },
  "tasks/pushNotificationConfig/delete": { id: "t", pushNotificationConfigId: "p", metadata: {} },
  "agent/getAuthenticatedExtendedCard": {},
};

/** Request bodies by REST path. */
export const bodies: Readonly<Record<string, object>> = {
  "/v1/message:send": {
    message: protoMessage,
    configuration: { ...configuration, pushNotification: push, blocking: true },
  },
  "/v1/message:stream": { message: protoMessage, configuration, metadata: {} },
  "/v1/tasks/t:cancel": { name: "tasks/t" },
  "/v1/tasks/t:subscribe": { name: "tasks/t" },
  "/v1/tasks/t/pushNotificationConfigs": {
    parent: "tasks/t",
    configId: "p",
    config: { name: "tasks/t/pushNotificationConfigs/p", pushNotificationConfig: push },
  },
};

/** gRPC requests by operation. */
export const calls: Readonly<Partial<Record<OperationName, object>>> = {
  SendMessage: { message: protoMessage, configuration: { ...configuration, pushNotification: push, blocking: true } },
  SendStreamingMessage: { message: protoMessage, configuration, metadata: {} },
  GetTask: { name: "tasks/t", historyLength: 1 },
  CancelTask: { name: "tasks/t" },
  SubscribeToTask: { name: "tasks/t" },
  CreateTaskPushNotificationConfig: {
    parent: "tasks/t",
    configId: "p",
    config: { name: "tasks/t/pushNotificationConfigs/p", pushNotificationConfig: push },
  },
  GetTaskPushNotificationConfig: { name: "tasks/t/pushNotificationConfigs/p" },
  ListTaskPushNotificationConfigs: { parent: "tasks/t", pageSize: 1, pageToken: "x" },
  DeleteTaskPushNotificationConfig: { name: "tasks/t/pushNotificationConfigs/p" },
  GetExtendedAgentCard: {},
};
