import type { JsonObject } from "../model/index.ts";
import { isMethod, type OperationName, type Operations } from "./operations.ts";

/** What a request names. None of it need exist. */
interface CalledResource {
  readonly taskId?: string;
  readonly contextId?: string;
  /** The tasks that a message refers to. */
  readonly referenceTaskIds?: readonly string[];
  /** The webhook configuration. */
  readonly configId?: string;
}

/** What the request of a method of an extension names: its texts `taskId` and `contextId`. */
function namedIn({ taskId, contextId }: JsonObject): Pick<CalledResource, "taskId" | "contextId"> {
  return {
    ...(typeof taskId === "string" && { taskId }),
    ...(typeof contextId === "string" && { contextId }),
  };
}

/** The task and what belongs to it, as a request names them. */
export function resourceOf(operation: OperationName, request: unknown): CalledResource {
  switch (operation) {
    case "SendMessage":
    case "SendStreamingMessage": {
      const { taskId, contextId, referenceTaskIds } = (request as Operations["SendMessage"]["request"]).message;
      return {
        ...(taskId !== undefined && { taskId }),
        ...(contextId !== undefined && { contextId }),
        ...(referenceTaskIds !== undefined && { referenceTaskIds }),
      };
    }
    case "GetTask":
    case "CancelTask":
    case "SubscribeToTask":
      return { taskId: (request as Operations["GetTask"]["request"]).id };
    case "ListTasks": {
      const { contextId } = request as Operations["ListTasks"]["request"];
      return contextId === undefined ? {} : { contextId };
    }
    case "GetExtendedAgentCard":
      return {};
    case "ListTaskPushNotificationConfigs":
      return { taskId: (request as Operations["ListTaskPushNotificationConfigs"]["request"]).taskId };
    default: {
      if (isMethod(operation)) return namedIn(request as JsonObject);
      const { taskId, id } = request as Operations["CreateTaskPushNotificationConfig"]["request"];
      return { ...(taskId !== undefined && { taskId }), ...(id !== undefined && { configId: id }) };
    }
  }
}
