import { BoundedMap, memoryOf } from "@parley/a2a/internal/base/bounded-map";
import { FieldsLogger } from "@parley/a2a/internal/base/index";
import type { Deliver, ExtensionHooks } from "@parley/a2a/internal/extensions/hooks";
import {
  A2AError,
  toA2AError,
  type AgentCard,
  type JsonObject,
  type ListTasksResponse,
  type StreamResponse,
  type Task,
} from "@parley/a2a/internal/model/index";
import {
  Payload,
  TextPayload,
  anonymous,
  isMethod,
  mapItems,
  resourceOf,
  taskFields,
  type AgentService,
  type CallContext,
  type FoundTasks,
  type MethodName,
  type MethodRequest,
  type OperationName,
  type Operations,
  type Reply,
  type StreamItem,
  type StreamName,
  type StreamOperations,
  type StreamReply,
  type TaskTextQuery,
  type UnaryName,
  type UnaryOperations,
} from "@parley/a2a/internal/protocol/index";
import type { LazyConfigs } from "../../push/index.ts";
import type { EventStream, LiveLogs } from "../log/index.ts";
import { serverIsStopping } from "../shared/errors.ts";
import type { HostedAgent } from "../shared/options.ts";
import type { EngineSettings } from "../shared/settings.ts";
import type { Runs } from "../supervise/index.ts";
import { AgentTasks } from "./agent-tasks.ts";
import { checkCall, methodOf, type CheckedAgent } from "./checks.ts";
import {
  cancelTask,
  createWebhook,
  deleteWebhook,
  getTask,
  getWebhook,
  listTasks,
  listWebhooks,
  sendMessage,
  sendStreamingMessage,
  subscribeToTask,
} from "./operations.ts";
import type { Sends } from "./send-message.ts";
import type { TaskIndex } from "./search.ts";

export interface ServiceDeps {
  readonly settings: EngineSettings;
  readonly index: TaskIndex;
  readonly liveLogs: LiveLogs;
  readonly runs: Pick<Runs, "endTask">;
  readonly sends: Sends;
  readonly configs: LazyConfigs | undefined;
  readonly door: { readonly isClosed: boolean };
}

/** What an operation is given: the request, its call, and the URIs of the extensions that are active in it. */
type Operation<Request, Answer> = (request: Request, context: CallContext, extensions: readonly string[]) => Answer;

type CoreUnaryName = Exclude<UnaryName, MethodName>;

type UnaryHandlers = {
  readonly [Name in CoreUnaryName]: Operation<
    UnaryOperations[Name]["request"],
    Promise<Reply<UnaryOperations[Name]["response"]>>
  >;
};

type StreamHandlers = {
  readonly [Name in StreamName]: Operation<StreamOperations[Name]["request"], Promise<EventStream>>;
};

/** The operations of one agent (A2A 1.0 §3.1). */
export function createService(hosted: CheckedAgent, deps: ServiceDeps): AgentService {
  const { settings, index, liveLogs, runs, sends, door } = deps;
  const delivery = new Delivery(settings.extensions);
  const tasks = new AgentTasks(hosted, settings, liveLogs);
  const unary: UnaryHandlers = {
    SendMessage: (request, context, extensions) => sendMessage(tasks, sends, request, context, extensions),
    GetTask: (request, context) => getTask(tasks, request, context),
    ListTasks: (request, context) => listTasks(tasks, request, context),
    CancelTask: (request, context, extensions) => cancelTask(tasks, runs, request, context, extensions),
    GetExtendedAgentCard: (_request, context) => getExtendedAgentCard(hosted, context),
    CreateTaskPushNotificationConfig: (request, context, extensions) =>
      createWebhook(tasks, deps, request, context, extensions),
    GetTaskPushNotificationConfig: (request, context) => getWebhook(tasks, deps, request, context),
    ListTaskPushNotificationConfigs: (request, context) => listWebhooks(tasks, deps, request, context),
    DeleteTaskPushNotificationConfig: (request, context) => deleteWebhook(tasks, deps, request, context),
  };
  const streams: StreamHandlers = {
    SendStreamingMessage: (request, context, extensions) =>
      sendStreamingMessage(tasks, sends, request, context, extensions),
    SubscribeToTask: (request, context) => subscribeToTask(tasks, request, context),
  };

  async function method(
    operation: MethodName,
    request: MethodRequest,
    context: CallContext,
    extensions: readonly string[],
  ): Promise<Reply<JsonObject>> {
    const { principal } = context;
    const { card } = hosted;
    const guarded = hosted.guard?.(outer) ?? outer;
    const { clock, logger: own } = settings;
    const logger = new FieldsLogger(own, () =>
      taskFields({ agent: hosted.id, ...resourceOf(operation, request), trace: context.trace }),
    );
    const { callMethod } = await import("@parley/a2a/internal/extensions/methods");
    const searchTasks = async (query: TaskTextQuery): Promise<FoundTasks> => {
      const { searchTasks: search } = await import("./search.ts");
      return search(tasks, index, guarded, query, context);
    };
    const call = { principal, extensions, context, card, service: guarded, searchTasks, clock, logger };
    return { payload: await callMethod(methodOf(hosted, operation), request, call) };
  }

  function check(
    operation: OperationName,
    request: Operations[OperationName]["request"],
    context: CallContext,
  ): readonly string[] {
    if (door.isClosed) throw serverIsStopping();
    return checkCall(hosted, operation, request, context);
  }

  const service: AgentService = {
    // Not an async function, because that would be one promise more for each message.
    call<Name extends UnaryName>(
      operation: Name,
      request: UnaryOperations[Name]["request"],
      context: CallContext,
    ): Promise<Reply<UnaryOperations[Name]["response"]>> {
      try {
        const extensions = check(operation, request, context);
        const reply: Promise<Reply<UnaryOperations[Name]["response"]>> = isMethod(operation)
          ? method(operation, request as MethodRequest, context, extensions)
          : unary[operation as CoreUnaryName](request as never, context, extensions);
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
      const extensions = check(operation, request, context);
      const batches = await streams[operation](request, context, extensions);
      if (extensions.length === 0) return { batches };
      return { batches: delivery.batches(batches, extensions), extensions };
    },
  };
  const outer = settings.blobs?.around(service, hosted.id, settings.ownerOf) ?? service;
  return outer;
}

/** GetExtendedAgentCard (A2A 1.0 §3.1.11). */
async function getExtendedAgentCard(
  { extendedCard }: HostedAgent,
  { principal }: CallContext,
): Promise<Reply<AgentCard>> {
  if (extendedCard === undefined) throw new A2AError("ExtendedAgentCardNotConfigured");
  // An authenticator may let callers in that it does not know.
  if (principal === anonymous) throw new A2AError("Unauthenticated", "The extended card requires authentication");
  return { payload: new Payload(await extendedCard(principal)) };
}

/** How many bytes of delivered events are kept for other readers. */
const keptBytes = 4 << 20;

/** Applies `onDeliver` of the active extensions to answers and events. */
export class Delivery {
  readonly #hooks: ExtensionHooks;
  /** Delivered events as JSON, by task, `seq` and active extensions. */
  readonly #kept = new BoundedMap<string>({ bytes: keptBytes, bytesOf: memoryOf });

  constructor(hooks: ExtensionHooks) {
    this.#hooks = hooks;
  }

  reply<T>(operation: UnaryName, reply: Reply<T>, active: readonly string[]): Reply<T> {
    const deliver = this.#hooks.deliver(active);
    if (deliver === undefined) return reply;
    return { ...reply, payload: reply.payload.map((value) => deliveredAnswer(operation, value, deliver) as T) };
  }

  batches(batches: StreamReply["batches"], active: readonly string[]): StreamReply["batches"] {
    const deliver = this.#hooks.deliver(active);
    if (deliver === undefined) return batches;
    const activation = [...active].sort().join(" ");
    return mapItems(batches, (item) => ({ ...item, payload: this.#payload(item, deliver, activation) }));
  }

  #payload({ payload, seq }: StreamItem, deliver: Deliver, activation: string): Payload<StreamResponse> {
    const event = payload.value;
    const taskId = event.statusUpdate?.taskId ?? event.artifactUpdate?.taskId;
    // A snapshot of a task has the `seq` of its last event, so that number does not identify it.
    if (seq === undefined || taskId === undefined) return new Payload(deliver(event));
    const key = `${taskId}\0${seq}\0${activation}`;
    const kept = this.#kept.get(key);
    if (kept !== undefined) return new TextPayload(kept);
    const json = JSON.stringify(deliver(event));
    this.#kept.set(key, json);
    return new TextPayload(json);
  }
}

function deliveredAnswer(operation: UnaryName, value: unknown, deliver: Deliver): unknown {
  const deliveredTask = (task: Task): Task => deliver({ task }).task as Task;
  switch (operation) {
    case "SendMessage":
      return deliver(value as StreamResponse);
    case "GetTask":
    case "CancelTask":
      return deliveredTask(value as Task);
    case "ListTasks": {
      const page = value as ListTasksResponse;
      return { ...page, tasks: page.tasks.map(deliveredTask) };
    }
    default:
      return value;
  }
}
