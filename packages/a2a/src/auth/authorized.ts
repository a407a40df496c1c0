import { A2AError } from "../model/index.ts";
import type { AgentService, CallContext, OperationName, Operations } from "../protocol/index.ts";
import type { Authorizer } from "./port.ts";

/** A service that asks an authorizer before each call. `agent`: the id of the agent behind it. */
export function authorized(service: AgentService, authorizer: Authorizer, agent: string): AgentService {
  async function check(operation: OperationName, request: unknown, context: CallContext): Promise<void> {
    const { principal } = context;
    const access = await authorizer({ operation, principal, agent, context, ...resourceOf(operation, request) });
    if (access !== "allow") throw new A2AError("PermissionDenied");
  }
  return {
    async call(operation, request, context) {
      await check(operation, request, context);
      return service.call(operation, request, context);
    },
    async stream(operation, request, context) {
      await check(operation, request, context);
      return service.stream(operation, request, context);
    },
  };
}

/** The task and the context that a request names. */
function resourceOf(
  operation: OperationName,
  request: unknown,
): { readonly taskId?: string; readonly contextId?: string } {
  switch (operation) {
    case "SendMessage":
    case "SendStreamingMessage": {
      const { taskId, contextId } = (request as Operations["SendMessage"]["request"]).message;
      return { ...(taskId !== undefined && { taskId }), ...(contextId !== undefined && { contextId }) };
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
    default: {
      const { taskId } = request as Operations["CreateTaskPushNotificationConfig"]["request"];
      return taskId === undefined ? {} : { taskId };
    }
  }
}
