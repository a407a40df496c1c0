import { BoundedMap, memoryOf } from "@parley/a2a/internal/base/bounded-map";
import { FieldsLogger } from "@parley/a2a/internal/base/index";
import type { Deliver, ExtensionHooks } from "@parley/a2a/internal/extensions/hooks";
import { A2AError, toA2AError, type AgentCard, type StreamResponse, type Task } from "@parley/a2a/internal/model/index";
import {
  Payload,
  TextPayload,
  anonymous,
  mapItems,
  resourceOf,
  taskFields,
  type AgentService,
  type CallContext,
  type FoundTasks,
  type MethodName,
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
import { checkCall, type CheckedAgent } from "./checks.ts";
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

/** An operation. `extensions`: URIs of the extensions that are active in the call. */
type Operation<Request, Answer> = (request: Request, context: CallContext, extensions: readonly string[]) => Answer;

/** Handlers by operation, including the methods of the agent's extensions. */
type UnaryHandlers = {
  readonly [Name in UnaryName]: Operation<
    UnaryOperations[Name]["request"],
    Promise<Reply<UnaryOperations[Name]["response"]>>
  >;
};

type StreamHandlers = {
  readonly [Name in StreamName]: Operation<StreamOperations[Name]["request"], Promise<EventStream>>;
};

/** The operations of one agent (A2A 1.0 §3.1). */
export function createService(hosted: CheckedAgent, deps: ServiceDeps): AgentService {
  const { settings } = deps;
  const tasks = new AgentTasks(hosted, settings, deps.liveLogs);
  const methods = methodHandlers(tasks, deps, () => outer);
  const service = new CheckedService(deps, hosted, unaryHandlers(tasks, deps, methods), streamHandlers(tasks, deps));
  const outer = settings.blobs?.around(service, hosted.id, settings.ownerOf) ?? service;
  return outer;
}

function unaryHandlers(tasks: AgentTasks, deps: ServiceDeps, methods: Pick<UnaryHandlers, MethodName>): UnaryHandlers {
  const { runs, sends } = deps;
  return {
    ...methods,
    SendMessage: (request, context, extensions) => sendMessage(tasks, sends, request, context, extensions),
    GetTask: (request, context) => getTask(tasks, request, context),
    ListTasks: (request, context) => listTasks(tasks, request, context),
    CancelTask: (request, context, extensions) => cancelTask(tasks, runs, request, context, extensions),
    GetExtendedAgentCard: (_request, context) => getExtendedAgentCard(tasks.hosted, context),
    CreateTaskPushNotificationConfig: (request, context, extensions) =>
      createWebhook(tasks, deps, request, context, extensions),
    GetTaskPushNotificationConfig: (request, context) => getWebhook(tasks, deps, request, context),
    ListTaskPushNotificationConfigs: (request, context) => listWebhooks(tasks, deps, request, context),
    DeleteTaskPushNotificationConfig: (request, context) => deleteWebhook(tasks, deps, request, context),
  };
}

function streamHandlers(tasks: AgentTasks, { sends }: ServiceDeps): StreamHandlers {
  return {
    SendStreamingMessage: (request, context, extensions) =>
      sendStreamingMessage(tasks, sends, request, context, extensions),
    SubscribeToTask: (request, context) => subscribeToTask(tasks, request, context),
  };
}

/** The methods of the agent's extensions. `serviceOf`: returns the agent's service as callers reach it. */
function methodHandlers(
  tasks: AgentTasks,
  { settings, index }: ServiceDeps,
  serviceOf: () => AgentService,
): Pick<UnaryHandlers, MethodName> {
  const { hosted } = tasks;
  const { clock } = settings;
  const handlers = Array.from(hosted.methods, ([operation, own]) => {
    const call: UnaryHandlers[MethodName] = async (request, context, extensions) => {
      const service = hosted.guard?.(serviceOf()) ?? serviceOf();
      const logger = new FieldsLogger(settings.logger, () =>
        taskFields({ agent: hosted.id, ...resourceOf(own.route.name, request), trace: context.trace }),
      );
      const { callMethod } = await import("@parley/a2a/internal/extensions/methods");
      const searchTasks = async (query: TaskTextQuery): Promise<FoundTasks> => {
        const { searchTasks: search } = await import("./search.ts");
        return search(tasks, index, service, query, context);
      };
      const { principal } = context;
      const made = { principal, extensions, context, card: hosted.card, service, searchTasks, clock, logger };
      return { payload: await callMethod(own, request, made) };
    };
    return [operation, call] as const;
  });
  return Object.fromEntries(handlers);
}

/** Checks each call, and lets its active extensions change the answer. */
class CheckedService implements AgentService {
  readonly #door: ServiceDeps["door"];
  readonly #hosted: CheckedAgent;
  readonly #unary: UnaryHandlers;
  readonly #streams: StreamHandlers;
  readonly #delivery: Delivery;

  constructor({ settings, door }: ServiceDeps, hosted: CheckedAgent, unary: UnaryHandlers, streams: StreamHandlers) {
    this.#door = door;
    this.#hosted = hosted;
    this.#unary = unary;
    this.#streams = streams;
    this.#delivery = new Delivery(settings.extensions);
  }

  // Not an async function, which would cost another promise per message.
  call<Name extends UnaryName>(
    operation: Name,
    request: UnaryOperations[Name]["request"],
    context: CallContext,
  ): Promise<Reply<UnaryOperations[Name]["response"]>> {
    try {
      const extensions = this.#check(operation, request, context);
      const reply = this.#unary[operation](request, context, extensions);
      if (extensions.length === 0) return reply;
      return reply.then((each) => this.#delivery.reply(operation, { extensions, ...each }, extensions));
    } catch (error) {
      return Promise.reject(toA2AError(error));
    }
  }

  async stream<Name extends StreamName>(
    operation: Name,
    request: StreamOperations[Name]["request"],
    context: CallContext,
  ): Promise<StreamReply> {
    const extensions = this.#check(operation, request, context);
    const batches = await this.#streams[operation](request, context, extensions);
    if (extensions.length === 0) return { batches };
    return { batches: this.#delivery.batches(batches, extensions), extensions };
  }

  #check(
    operation: OperationName,
    request: Operations[OperationName]["request"],
    context: CallContext,
  ): readonly string[] {
    if (this.#door.isClosed) throw serverIsStopping();
    return checkCall(this.#hosted, operation, request, context);
  }
}

/** GetExtendedAgentCard (A2A 1.0 §3.1.11). */
async function getExtendedAgentCard(
  { extendedCard }: HostedAgent,
  { principal }: CallContext,
): Promise<Reply<AgentCard>> {
  if (extendedCard === undefined) throw new A2AError("ExtendedAgentCardNotConfigured");
  // An authenticator may accept anonymous callers.
  if (principal === anonymous) throw new A2AError("Unauthenticated", "The extended card requires authentication");
  return { payload: new Payload(await extendedCard(principal)) };
}

/** Maximum bytes of delivered events that are cached for other readers. */
const keptBytes = 4 << 20;

/** Applies `onDeliver` of the active extensions to answers and events. */
export class Delivery {
  readonly #hooks: ExtensionHooks;
  /** Delivered events as JSON, by task, `seq` and active extensions. */
  readonly #kept = new BoundedMap<string>({ bytes: keptBytes, bytesOf: memoryOf });

  constructor(hooks: ExtensionHooks) {
    this.#hooks = hooks;
  }

  reply<Name extends UnaryName>(
    operation: Name,
    reply: Reply<UnaryOperations[Name]["response"]>,
    active: readonly string[],
  ): Reply<UnaryOperations[Name]["response"]> {
    const deliver = this.#hooks.deliver(active);
    const change = deliver && changesOf(deliver)[operation];
    return change === undefined ? reply : { ...reply, payload: reply.payload.map(change) };
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
    // A task snapshot has the `seq` of its last event, so `seq` does not identify the snapshot.
    if (seq === undefined || taskId === undefined) return new Payload(deliver(event));
    const key = `${taskId}\0${seq}\0${activation}`;
    const kept = this.#kept.get(key);
    if (kept !== undefined) return new TextPayload(kept);
    const json = JSON.stringify(deliver(event));
    this.#kept.set(key, json);
    return new TextPayload(json);
  }
}

type AnswerChanges = {
  readonly [Name in UnaryName]?: (answer: UnaryOperations[Name]["response"]) => UnaryOperations[Name]["response"];
};

/** The changes that `deliver` makes to answers with tasks or messages. */
function changesOf(deliver: Deliver): AnswerChanges {
  const deliverTask = (task: Task): Task => deliver({ task }).task ?? task;
  return {
    SendMessage(answer) {
      const { task, message } = deliver(answer);
      if (task !== undefined) return { task };
      return message === undefined ? answer : { message };
    },
    GetTask: deliverTask,
    CancelTask: deliverTask,
    ListTasks: (page) => ({ ...page, tasks: page.tasks.map(deliverTask) }),
  };
}
