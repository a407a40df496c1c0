import type { JsonRpcWire, RestRoute } from "../bindings.ts";
import { operations, type OperationName } from "../../protocol/index.ts";

/** Methods of JSON-RPC have the names of the operations (A2A 1.0 §5.3). */
export const names: Pick<JsonRpcWire, "operation" | "method"> = {
  operation: (method) => (Object.hasOwn(operations, method) ? (method as OperationName) : undefined),
  method: (operation) => operation,
};

/** A2A 1.0 §11.3. Names in braces are fields of the request, so that a path and the rest of a request make up the whole. */
export const routes: readonly RestRoute[] = [
  { operation: "SendMessage", methods: ["POST"], path: "/message:send", body: true },
  { operation: "SendStreamingMessage", methods: ["POST"], path: "/message:stream", body: true },
  { operation: "GetTask", methods: ["GET"], path: "/tasks/{id}", body: false, query: { historyLength: "integer" } },
  {
    operation: "ListTasks",
    methods: ["GET"],
    path: "/tasks",
    body: false,
    query: {
      contextId: "string",
      status: "string",
      pageSize: "integer",
      pageToken: "string",
      historyLength: "integer",
      statusTimestampAfter: "string",
      includeArtifacts: "boolean",
    },
  },
  { operation: "CancelTask", methods: ["POST"], path: "/tasks/{id}:cancel", body: true },
  // The text says POST (§5.3, §11.3.2), the proto's annotation GET. POST goes first: it is what the official clients
  // send and what every server known to us takes.
  { operation: "SubscribeToTask", methods: ["POST", "GET"], path: "/tasks/{id}:subscribe", body: false },
  {
    operation: "CreateTaskPushNotificationConfig",
    methods: ["POST"],
    path: "/tasks/{taskId}/pushNotificationConfigs",
    body: true,
  },
  {
    operation: "GetTaskPushNotificationConfig",
    methods: ["GET"],
    path: "/tasks/{taskId}/pushNotificationConfigs/{id}",
    body: false,
  },
  {
    operation: "ListTaskPushNotificationConfigs",
    methods: ["GET"],
    path: "/tasks/{taskId}/pushNotificationConfigs",
    body: false,
    query: { pageSize: "integer", pageToken: "string" },
  },
  {
    operation: "DeleteTaskPushNotificationConfig",
    methods: ["DELETE"],
    path: "/tasks/{taskId}/pushNotificationConfigs/{id}",
    body: false,
  },
  { operation: "GetExtendedAgentCard", methods: ["GET"], path: "/extendedAgentCard", body: false },
];
