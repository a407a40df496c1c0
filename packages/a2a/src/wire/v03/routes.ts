import type { JsonRpcWire, RestRoute } from "../codec.ts";
import type { CoreName } from "../../protocol/index.ts";

/** Methods of JSON-RPC (0.3 §3.5.6). JSON-RPC has no `tasks/list`, the other bindings have. */
const methods: Readonly<Record<CoreName, string>> = {
  SendMessage: "message/send",
  SendStreamingMessage: "message/stream",
  GetTask: "tasks/get",
  ListTasks: "tasks/list",
  CancelTask: "tasks/cancel",
  SubscribeToTask: "tasks/resubscribe",
  CreateTaskPushNotificationConfig: "tasks/pushNotificationConfig/set",
  GetTaskPushNotificationConfig: "tasks/pushNotificationConfig/get",
  ListTaskPushNotificationConfigs: "tasks/pushNotificationConfig/list",
  DeleteTaskPushNotificationConfig: "tasks/pushNotificationConfig/delete",
  GetExtendedAgentCard: "agent/getAuthenticatedExtendedCard",
};

const operations: ReadonlyMap<string, CoreName> = new Map(
  (Object.keys(methods) as CoreName[])
    .filter((operation) => operation !== "ListTasks")
    .map((operation) => [methods[operation], operation]),
);

export const names: Pick<JsonRpcWire, "operation" | "method"> = {
  operation: (method) => operations.get(method),
  method: (operation) => methods[operation as CoreName],
};

/**
 * Routes of REST (0.3 §3.5.6, and the annotations of its proto). Only the text has a list of tasks. To create a webhook the
 * annotation says `task` for `tasks`; no implementation follows it.
 */
export const routes: readonly RestRoute[] = [
  { operation: "SendMessage", methods: ["POST"], path: "/v1/message:send", body: true },
  { operation: "SendStreamingMessage", methods: ["POST"], path: "/v1/message:stream", body: true },
  { operation: "GetTask", methods: ["GET"], path: "/v1/tasks/{id}", body: false, query: { historyLength: "integer" } },
  {
    operation: "ListTasks",
    methods: ["GET"],
    path: "/v1/tasks",
    body: false,
    query: {
      contextId: "string",
      status: "string",
      pageSize: "integer",
      pageToken: "string",
      historyLength: "integer",
      includeArtifacts: "boolean",
    },
  },
  { operation: "CancelTask", methods: ["POST"], path: "/v1/tasks/{id}:cancel", body: true },
  // The text says POST, the annotation of the proto GET. Servers serve one or the other.
  { operation: "SubscribeToTask", methods: ["POST", "GET"], path: "/v1/tasks/{id}:subscribe", body: false },
  {
    operation: "CreateTaskPushNotificationConfig",
    methods: ["POST"],
    path: "/v1/tasks/{taskId}/pushNotificationConfigs",
    body: true,
  },
  {
    operation: "GetTaskPushNotificationConfig",
    methods: ["GET"],
    path: "/v1/tasks/{taskId}/pushNotificationConfigs/{id}",
    body: false,
  },
  {
    operation: "ListTaskPushNotificationConfigs",
    methods: ["GET"],
    path: "/v1/tasks/{taskId}/pushNotificationConfigs",
    body: false,
  },
  {
    operation: "DeleteTaskPushNotificationConfig",
    methods: ["DELETE"],
    path: "/v1/tasks/{taskId}/pushNotificationConfigs/{id}",
    body: false,
  },
  { operation: "GetExtendedAgentCard", methods: ["GET"], path: "/v1/card", body: false },
];

/** 0.2 has no method for the extended card. Its clients read it here (0.2.5 §7.10). */
export const extendedCardPath = "/agent/authenticatedExtendedCard";

export const elsewhere: readonly RestRoute[] = [
  { operation: "GetExtendedAgentCard", methods: ["GET"], path: extendedCardPath, body: false },
];
