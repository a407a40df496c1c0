import { A2AError, toA2AError } from "../../model/index.ts";
import type {
  AgentService,
  CallContext,
  OperationName,
  Reply,
  StreamName,
  StreamOperations,
  StreamReply,
  UnaryName,
  UnaryOperations,
} from "../../protocol/index.ts";
import type { LiveLogs } from "../log/index.ts";
import type { EngineSettings } from "../options.ts";
import { serverIsStopping } from "../refusals.ts";
import type { Runs } from "../supervise/runs.ts";
import { AgentTasks } from "./agent-tasks.ts";
import { cancelTask } from "./cancel-task.ts";
import { activate, checkCapability, type CheckedAgent } from "./checks.ts";
import { Delivery } from "./delivery.ts";
import { getExtendedAgentCard } from "./extended-card.ts";
import type { StreamHandlers, UnaryHandlers } from "./operations.ts";
import { getTask, listTasks } from "./read-tasks.ts";
import { sendMessage, sendStreamingMessage } from "./send-message.ts";
import type { Sends } from "./sends.ts";
import { subscribeToTask } from "./task-stream.ts";

/** What the operations of an agent stand on. */
export interface ServiceRooms {
  readonly settings: EngineSettings;
  readonly liveLogs: LiveLogs;
  readonly runs: Pick<Runs, "endTask">;
  readonly sends: Sends;
  readonly isClosed: () => boolean;
}

/** The operations of one agent (A2A 1.0 §3.1). */
export function createService(hosted: CheckedAgent, rooms: ServiceRooms): AgentService {
  const { settings, liveLogs, runs, sends, isClosed } = rooms;
  const delivery = new Delivery(settings.extensions);
  const tasks = new AgentTasks(hosted.id, settings, liveLogs);
  const unary: UnaryHandlers = {
    SendMessage: sendMessage(hosted, tasks, sends),
    GetTask: getTask(tasks),
    ListTasks: listTasks(tasks),
    CancelTask: cancelTask(tasks, runs),
    GetExtendedAgentCard: getExtendedAgentCard(hosted),
    CreateTaskPushNotificationConfig: refusePush,
    GetTaskPushNotificationConfig: refusePush,
    ListTaskPushNotificationConfigs: refusePush,
    DeleteTaskPushNotificationConfig: refusePush,
  };
  const streams: StreamHandlers = {
    SendStreamingMessage: sendStreamingMessage(hosted, tasks, sends),
    SubscribeToTask: subscribeToTask(tasks),
  };

  /** What every call is held to, before any work. Gives the extensions that are active in it. */
  function check(operation: OperationName, context: CallContext): readonly string[] {
    if (isClosed()) throw serverIsStopping();
    checkCapability(hosted, operation);
    return activate(hosted, context);
  }

  return {
    // Not an async function of its own: every message comes through here.
    call<Name extends UnaryName>(
      operation: Name,
      request: UnaryOperations[Name]["request"],
      context: CallContext,
    ): Promise<Reply<UnaryOperations[Name]["response"]>> {
      try {
        const extensions = check(operation, context);
        const reply = unary[operation](request, context, extensions);
        if (extensions.length === 0) return reply;
        return reply.then((each) => delivery.reply(operation, { extensions, ...each }, extensions));
      } catch (error) {
        return Promise.reject(toA2AError(error));
      }
    },
    async stream<Name extends StreamName>(
      operation: Name,
      request: StreamOperations[Name]["request"],
      context: CallContext,
    ): Promise<StreamReply> {
      const extensions = check(operation, context);
      const batches = await streams[operation](request, context, extensions);
      if (extensions.length === 0) return { batches };
      return { batches: delivery.batches(batches, extensions), extensions };
    },
  };
}

/** Webhooks come with a later version; until then no card declares them, and `checkCapability` answers before this. */
function refusePush(): Promise<never> {
  return Promise.reject(new A2AError("PushNotificationNotSupported"));
}
