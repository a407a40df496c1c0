import type { JsonRpcWire, RestRoute } from "../bindings.ts";
import { operations, type OperationName } from "../../protocol/index.ts";

/** Methods of JSON-RPC have the names of the operations (A2A 1.0 §5.3). */
export const names: Pick<JsonRpcWire, "operation" | "method"> = {
  operation: (method) => (Object.hasOwn(operations, method) ? (method as OperationName) : undefined),
  method: (operation) => operation,
};

/** Routes of REST (A2A 1.0 §11.3). A name in braces is a field of the request. */
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
  // The text of the specification says POST (§5.3, §11.3.2), the annotation of its proto GET. Clients send POST, because the
  // official clients do, and every server that we know accepts it.
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
