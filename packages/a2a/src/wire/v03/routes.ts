import type { JsonRpcWire } from "../bindings.ts";
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
