import { invalidParams } from "@parley/a2a";
import type { OperationName } from "@parley/a2a/protocol";
import type { JsonObject } from "./protobuf/types.ts";

/**
 * 0.3 names things as resources, `tasks/{id}` and `tasks/{id}/pushNotificationConfigs/{id}`; over REST the same names are
 * paths, whose variable segments a request has as members.
 */

const taskPattern = /^tasks\/([^/]+)$/;
const configPattern = /^tasks\/([^/]+)\/pushNotificationConfigs\/([^/]+)$/;

/** A request as REST has it. */
export function readNames(operation: OperationName, value: JsonObject): JsonObject {
  const { name, parent, ...rest } = value;
  switch (operation) {
    case "GetTask":
    case "CancelTask":
    case "SubscribeToTask":
      return { ...rest, id: match("name", name, taskPattern, "tasks/{id}")[1] };
    case "CreateTaskPushNotificationConfig":
    case "ListTaskPushNotificationConfigs":
      return { ...rest, id: match("parent", parent, taskPattern, "tasks/{id}")[1] };
    case "GetTaskPushNotificationConfig":
    case "DeleteTaskPushNotificationConfig": {
      const [, id, config] = match("name", name, configPattern, "tasks/{id}/pushNotificationConfigs/{id}");
      return { ...rest, id, pushNotificationConfigId: config };
    }
    default:
      return value;
  }
}

function match(field: string, name: unknown, pattern: RegExp, like: string): readonly string[] {
  const found = typeof name === "string" ? pattern.exec(name) : null;
  if (found !== null) return found;
  throw invalidParams([{ field, description: `must be ${like}` }]);
}
