import { A2AError, isTerminal, type Task } from "../../model/index.ts";
import {
  Payload,
  type AgentService,
  type CallContext,
  type StreamItem,
  type StreamName,
  type StreamOperations,
} from "../../protocol/index.ts";
import { isFinal } from "./from-model.ts";

/**
 * A peer's service as readers of 1.0 expect it: a subscription begins with the task (A2A 1.0 §3.1.6). Some servers of 0.3
 * begin with whatever happens next (0.3 §7.9 leaves it open), and what happened before is lost to whoever comes back.
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
      // After what was seen comes what was not: a caller who knows where it was is promised that by the card.
      if (!("id" in request) || context.after !== undefined) return reply;
      return { ...reply, batches: fromTheTask(reply.batches, () => taskOf(service, request.id, context)) };
    },
  };
}

/** The task, if it can be had. */
async function taskOf(service: AgentService, id: string, context: CallContext): Promise<Task | undefined> {
  try {
    return (await service.call("GetTask", { id }, context)).payload.value;
  } catch (thrown) {
    if (thrown instanceof A2AError && (thrown.code === "Aborted" || thrown.code === "Timeout")) throw thrown;
    return undefined;
  }
}

/**
 * A stream with the task in front, where that is missing. What is read just then may be in the task already, or not: at
 * the end the task takes the place of the last event, so that whoever reads to there knows it as it is.
 */
function fromTheTask(
  batches: AsyncIterable<readonly StreamItem[]>,
  get: () => Promise<Task | undefined>,
): AsyncIterable<readonly StreamItem[]> {
  return {
    // No generator: a reader that leaves must reach the source while it is waited for.
    [Symbol.asyncIterator]() {
      const source = batches[Symbol.asyncIterator]();
      /** Whether the task is put in here; unknown before the first event. */
      let puts: boolean | undefined;
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
          if (result.done === true || puts === false) return result;
          const batch = result.value;
          const begins = puts === undefined;
          const events = batch.map(({ payload }) => payload.value);
          puts ??= events[0]?.statusUpdate !== undefined || events[0]?.artifactUpdate !== undefined;
          const last = events.findIndex(({ statusUpdate }) => isFinal(statusUpdate?.status.state));
          const task = puts && (begins || last >= 0) ? await get() : undefined;
          if (task === undefined) return result;
          const { state } = task.status;
          // Not yet what the last event says: that event it is.
          if (last >= 0 && events[last]?.statusUpdate?.status.state !== state) return result;
          if (last < 0 && !isTerminal(state)) {
            return {
              done: false,
              value: [{ payload: new Payload({ task }) }, ...batch.filter((item) => !holds(task, item))],
            };
          }
          await end();
          return { done: false, value: [...(begins ? [] : batch.slice(0, last)), { payload: new Payload({ task }) }] };
        },
        return: end,
      };
    },
  };
}

function holds(task: Task, { payload }: StreamItem): boolean {
  const { artifactUpdate } = payload.value;
  if (artifactUpdate === undefined) return false;
  const { artifact, append } = artifactUpdate;
  const known = task.artifacts?.find(({ artifactId }) => artifactId === artifact.artifactId)?.parts ?? [];
  return (
    JSON.stringify(append === true ? known.slice(-artifact.parts.length) : known) === JSON.stringify(artifact.parts)
  );
}
