import { once } from "../../base/index.ts";
import {
  A2AError,
  hasCode,
  invalidParams,
  isTerminal,
  type Task,
  type TaskPushNotificationConfig,
} from "../../model/index.ts";
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
  isSend,
} from "../../protocol/index.ts";
import { isFinal } from "./messages.ts";

/** Adapts services, because 0.3 behaves differently from 1.0. Servers adapt to callers of 0.3, and clients to servers of 0.3. */

/** Wraps the service of a server, so that it behaves as callers of 0.3 expect. */
export function adapt(service: AgentService): AgentService {
  return {
    // Not async, because that would slow down calls that are not adapted.
    call<Name extends UnaryName>(operation: Name, request: UnaryOperations[Name]["request"], context: CallContext) {
      if (operation === "GetTaskPushNotificationConfig" && (request as { readonly id: string }).id === "") {
        const { taskId } = request as UnaryOperations["GetTaskPushNotificationConfig"]["request"];
        return someConfig(service, taskId, context);
      }
      const reply = service.call(operation, request, context);
      if (operation === "GetExtendedAgentCard") return reply.catch(refuseCard);
      const path = webhookPath(operation, request);
      return path === undefined ? reply : reply.catch((thrown: unknown) => inNamesOf03(thrown, path));
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
        if (task === undefined) return inNamesOf03(thrown, inSend);
        return { batches: once([{ payload: new Payload({ task }) }]) };
      }
    },
  };
}

/** The path of a webhook in a request; `undefined` if the request has no webhook. */
function webhookPath(operation: UnaryName, request: UnaryOperations[UnaryName]["request"]): string | undefined {
  if (operation === "CreateTaskPushNotificationConfig") return "";
  return isSend(operation, request) && request.configuration?.taskPushNotificationConfig ? inSend : undefined;
}

const inSend = "configuration.taskPushNotificationConfig";

/** Rethrows an error, with the 0.3 names of a webhook's members (0.3 §6.8). `path` is the path of the webhook in a 1.0 request. */
function inNamesOf03(thrown: unknown, path: string): never {
  if (!hasCode(thrown, "InvalidParams") || !thrown.fields.some(({ field }) => isIn(path, field))) throw thrown;
  throw invalidParams(
    thrown.fields.map(({ field, description }) => ({
      field: isIn(path, field) ? nameOf03(field, path) : field,
      description,
    })),
  );
}

function isIn(path: string, field: string): boolean {
  return path === "" ? field !== "taskId" : field === path || field.startsWith(`${path}.`);
}

function nameOf03(field: string, path: string): string {
  const renamed = path === "" ? `pushNotificationConfig.${field}` : field.replace("taskPush", "push");
  return renamed.replace(/\.scheme$/, ".schemes[0]");
}

/** 0.3 has one code for a card that does not exist, declared or not (0.3 §7.10, §8.2). */
function refuseCard(thrown: unknown): never {
  if (!hasCode(thrown, "UnsupportedOperation")) throw thrown;
  throw new A2AError("ExtendedAgentCardNotConfigured", thrown.message, { cause: thrown });
}

/** The reply to a subscription to a finished task: the task, then the end. In 1.0 such a subscription is an error (A2A 1.0 §3.1.6). */
async function finishedTask(
  service: AgentService,
  id: string,
  thrown: unknown,
  context: CallContext,
): Promise<Task | undefined> {
  // An agent without streaming answers with the same code, but names no task.
  if (!hasCode(thrown, "UnsupportedOperation") || thrown.metadata["taskId"] !== id) return undefined;
  const { payload } = await service.call("GetTask", { id }, context);
  return isTerminal(payload.value.status.state) ? payload.value : undefined;
}

/** The config for a request without a config id: the config with the id of the task, else the newest. 0.3 §7.6 does not define this case. */
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

/** Ends a stream with its `final` event (0.3 §7.2.2). In 1.0 a subscription stays open at input-required. */
function untilFinal(batches: Batches): Batches {
  return rewritten(batches, (batch) => {
    const last = batch.findIndex(({ payload }) => isFinal(payload.value.statusUpdate?.status.state));
    return last < 0 ? { batch, ends: false } : { batch: batch.slice(0, last + 1), ends: true };
  });
}

/**
 * Wraps the service of a server of 0.3, so that a subscription begins with the task (A2A 1.0 §3.1.6). Some servers begin with the next event
 * (0.3 §7.9 does not define the first event), so the reader would miss earlier events.
 */
export function adaptClient(service: AgentService): AgentService {
  return {
    call: (operation, request, context) => service.call(operation, request, context),
    async stream<Name extends StreamName>(
      operation: Name,
      request: StreamOperations[Name]["request"],
      context: CallContext,
    ) {
      const reply = await service.stream(operation, request, context);
      // If the caller has a cursor, the card promises that the stream continues after it.
      if (!("id" in request) || context.after !== undefined) return reply;
      return { ...reply, batches: fromTheTask(reply.batches, () => taskOf(service, request.id, context)) };
    },
  };
}

/** The task; `undefined` if it cannot be read. */
async function taskOf(service: AgentService, id: string, context: CallContext): Promise<Task | undefined> {
  try {
    return (await service.call("GetTask", { id }, context)).payload.value;
  } catch (thrown) {
    if (hasCode(thrown, "Aborted", "Timeout")) throw thrown;
    return undefined;
  }
}

/**
 * A stream that starts with the task. If the server did not send the task, it is read. The task may or may not include the first events, so
 * at the end, the task is read again, replaces the last event and corrects the state.
 */
function fromTheTask(batches: Batches, get: () => Promise<Task | undefined>): Batches {
  /** Whether to insert the task at the beginning; `undefined` before the first event. */
  let adds: boolean | undefined;
  return rewritten(batches, async (batch) => {
    const unchanged = { batch, ends: false };
    if (adds === false) return unchanged;
    const begins = adds === undefined;
    const events = batch.map(({ payload }) => payload.value);
    adds ??= events[0]?.statusUpdate !== undefined || events[0]?.artifactUpdate !== undefined;
    const last = events.findIndex(({ statusUpdate }) => isFinal(statusUpdate?.status.state));
    const task = adds && (begins || last >= 0) ? await get() : undefined;
    if (task === undefined) return unchanged;
    const { state } = task.status;
    // The task does not have the state of the last event yet, so the event stays.
    if (last >= 0 && events[last]?.statusUpdate?.status.state !== state) return unchanged;
    const item: StreamItem = { payload: new Payload({ task }) };
    if (last < 0 && !isTerminal(state)) {
      return { batch: [item, ...batch.filter((other) => !contains(task, other))], ends: false };
    }
    return { batch: [...(begins ? [] : batch.slice(0, last)), item], ends: true };
  });
}

/** Whether the task contains the artifact, or the chunk, of an event. */
function contains(task: Task, { payload }: StreamItem): boolean {
  const { artifactUpdate } = payload.value;
  if (artifactUpdate === undefined) return false;
  const { artifact, append } = artifactUpdate;
  const known = task.artifacts?.find(({ artifactId }) => artifactId === artifact.artifactId)?.parts ?? [];
  const compared = append === true ? known.slice(-artifact.parts.length) : known;
  return JSON.stringify(compared) === JSON.stringify(artifact.parts);
}

type Batch = readonly StreamItem[];
type Batches = AsyncIterable<Batch>;

interface Rewritten {
  readonly batch: Batch;
  /** Whether the stream ends after this batch. */
  readonly ends: boolean;
}

/** The batches that `rewrite` returns. Not a generator, because a reader that stops must be able to end the source while a read waits. */
function rewritten(batches: Batches, rewrite: (batch: Batch) => Rewritten | Promise<Rewritten>): Batches {
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
          const { batch, ends } = await rewrite(result.value);
          if (ends) await end();
          return { done: false, value: batch };
        },
        return: end,
      };
    },
  };
}
