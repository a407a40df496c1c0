import type { JsonRpcWire, RestRoute } from "../codec.ts";
import type { OperationName } from "../../protocol/index.ts";

/** Methods of JSON-RPC (0.3 §3.5.6). `tasks/list` is not among them: it is a matter of the other bindings. */
const methods: Readonly<Record<OperationName, string>> = {
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

const operations: ReadonlyMap<string, OperationName> = new Map(
  (Object.keys(methods) as OperationName[])
    .filter((operation) => operation !== "ListTasks")
    .map((operation) => [methods[operation], operation]),
);

export const names: Pick<JsonRpcWire, "operation" | "method"> = {
  operation: (method) => operations.get(method),
  method: (operation) => methods[operation],
};

/** Paths of REST (0.3 §3.5.6, and the annotations of its proto). */
export const routes: readonly RestRoute[] = [
  { operation: "SendMessage", methods: ["POST"], path: "/v1/message:send", body: true },
  { operation: "SendStreamingMessage", methods: ["POST"], path: "/v1/message:stream", body: true },
  { operation: "GetTask", methods: ["GET"], path: "/v1/tasks/{id}", body: false, query: { historyLength: "integer" } },
  { operation: "CancelTask", methods: ["POST"], path: "/v1/tasks/{id}:cancel", body: true },
  // The text says POST, the proto's annotation GET, and peers serve the one or the other.
  { operation: "SubscribeToTask", methods: ["POST", "GET"], path: "/v1/tasks/{id}:subscribe", body: false },
  { operation: "GetExtendedAgentCard", methods: ["GET"], path: "/v1/card", body: false },
];
