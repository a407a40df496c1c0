import { once } from "../../base/index.ts";
import { A2AError, isTerminal, type Task, type TaskPushNotificationConfig } from "../../model/index.ts";
import {
  Payload,
  type AgentService,
  type CallContext,
  type Reply,
  type StreamItem,
  type StreamName,
  type StreamOperations,
  type UnaryName,
  type UnaryOperations,
} from "../../protocol/index.ts";
import { isFinal } from "./from-model.ts";

/** A server's service as callers of 0.3 expect it, where that is not what 1.0 says. */
export function adapt(service: AgentService): AgentService {
  return {
    // Not async functions of their own: what is left alone costs nothing.
    call<Name extends UnaryName>(operation: Name, request: UnaryOperations[Name]["request"], context: CallContext) {
      if (operation === "GetTaskPushNotificationConfig" && (request as { readonly id: string }).id === "") {
        const { taskId } = request as UnaryOperations["GetTaskPushNotificationConfig"]["request"];
        return someConfig(service, taskId, context);
      }
      const reply = service.call(operation, request, context);
      return operation === "GetExtendedAgentCard" ? reply.catch(refuseCard) : reply;
    },
    async stream<Name extends StreamName>(
      operation: Name,
      request: StreamOperations[Name]["request"],
      context: CallContext,
    ) {
      try {
        const reply = await service.stream(operation, request, context);
        return Object.assign({}, reply, { batches: untilFinal(reply.batches) });
      } catch (thrown) {
        const task = "id" in request ? await finishedTask(service, request.id, thrown, context) : undefined;
        if (task === undefined) throw thrown;
        return { batches: once([{ payload: new Payload({ task }) }]) };
      }
    },
  };
}

/** One code for a card that is not there, declared or not (0.3 §7.10, §8.2). */
function refuseCard(thrown: unknown): never {
  throw isUnsupported(thrown)
    ? new A2AError("ExtendedAgentCardNotConfigured", thrown.message, { cause: thrown })
    : thrown;
}

function isUnsupported(thrown: unknown): thrown is A2AError {
  return thrown instanceof A2AError && thrown.code === "UnsupportedOperation";
}

/** A subscription to a finished task gives the task and closes; 1.0 refuses it (A2A 1.0 §3.1.6). */
async function finishedTask(
  service: AgentService,
  id: string,
  thrown: unknown,
  context: CallContext,
): Promise<Task | undefined> {
  // The same code says that an agent does not stream; it names no task then.
  if (!isUnsupported(thrown) || thrown.metadata["taskId"] !== id) return undefined;
  const { payload } = await service.call("GetTask", { id }, context);
  return isTerminal(payload.value.status.state) ? payload.value : undefined;
}

/** The config whose id is the task's, else the newest (0.3 §7.6 has no word on which). */
async function someConfig(
  service: AgentService,
  taskId: string,
  context: CallContext,
): Promise<Reply<TaskPushNotificationConfig>> {
  const { payload } = await service.call("ListTaskPushNotificationConfigs", { taskId }, context);
  const { configs = [] } = payload.value;
  const config = configs.find(({ id }) => id === taskId) ?? configs.at(-1);
  if (config !== undefined) return { payload: new Payload(config) };
  throw new A2AError("TaskNotFound", "This task has no push notification config", { metadata: { taskId } });
}

/**
 * Ends a stream with the event that says `final` (0.3 §7.2.2); a subscription of 1.0 goes on at input-required. No
 * generator: a reader that leaves must reach the source while it is waited for.
 */
function untilFinal(batches: AsyncIterable<readonly StreamItem[]>): AsyncIterable<readonly StreamItem[]> {
  return {
    [Symbol.asyncIterator]() {
      const source = batches[Symbol.asyncIterator]();
      let over = false;
      const end = async (): Promise<IteratorReturnResult<undefined>> => {
        over = true;
        await source.return?.();
        return { done: true, value: undefined };
      };
      return {
        async next() {
          if (over) return { done: true, value: undefined };
          const result = await source.next();
          if (result.done === true) return result;
          const batch = result.value;
          const last = batch.findIndex(({ payload }) => isFinal(payload.value.statusUpdate?.status.state));
          if (last < 0) return result;
          await end();
          return { done: false, value: batch.slice(0, last + 1) };
        },
        return: end,
      };
    },
  };
}
