import type { RestRoute } from "../bindings.ts";

/**
 * Paths of REST (0.3 §3.5.6, the annotations of its proto). The text has a list of tasks that the proto has not; the
 * annotation of a webhook's creation says `task` for `tasks`, which nobody follows.
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
  // The text says POST, the proto's annotation GET, and peers serve the one or the other.
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

/** 0.2 has no method for the extended card: its clients read it here (0.2.5 §7.10). */
export const extendedCardPath = "/agent/authenticatedExtendedCard";

export const elsewhere: readonly RestRoute[] = [
  { operation: "GetExtendedAgentCard", methods: ["GET"], path: extendedCardPath, body: false },
];
