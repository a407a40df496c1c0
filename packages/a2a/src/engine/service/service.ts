import {
  A2AError,
  countsInGeneration,
  hasGenerations,
  invalidParams,
  isTerminal,
  toA2AError,
  type GetTaskRequestDraft,
  type ListTasksRequest,
  type ListTasksResponse,
  type SendMessageRequest,
  type SubscribeToTaskRequest,
} from "../../model/index.ts";
import type {
  AgentService,
  CallContext,
  Reply,
  StreamName,
  StreamReply,
  UnaryName,
  UnaryOperations,
} from "../../protocol/index.ts";
import {
  assembleLog,
  roomless,
  type LoadOptions,
  type Owner,
  type Room,
  type Snapshot,
  type TaskHead,
  type TaskKey,
} from "../../store/index.ts";
import { taskNotFound } from "../refusals.ts";
import { activate, checkCapability, type CheckedAgent } from "./checks.ts";
import { decodePageToken, encodePageToken } from "./page-token.ts";
import { EventStream, messageItem, snapshotItem, type StreamFrom } from "../log/event-stream.ts";
import { generationAt, waitForGeneration } from "../log/generations.ts";
import { waitForAnswer } from "../log/reader.ts";
import { counted, pageOf, taskOf, wrapped } from "./replies.ts";
import { statusRecord } from "../log/records.ts";
import type { Runs } from "../supervise/runs.ts";
import type { Sends } from "./sends.ts";

type Handlers = {
  readonly [Name in UnaryName]: (
    request: UnaryOperations[Name]["request"],
    context: CallContext,
    /** URIs of the extensions that are active in this call. */
    extensions: readonly string[],
  ) => Promise<Reply<UnaryOperations[Name]["response"]>>;
};

/** The operations of one agent (A2A 1.0 §3.1) over the rooms of the engine. */
export function createService(hosted: CheckedAgent, runs: Runs, sends: Sends, isClosed: () => boolean): AgentService {
  const { settings, board } = runs;
  const { store } = settings;

  function ownerOf(context: CallContext): Owner {
    return { agent: hosted.id, owner: settings.ownerOf(context.principal) };
  }

  async function load(task: TaskKey, historyLength: number | undefined, context: CallContext): Promise<Snapshot> {
    const snapshot = await store.load(task, task.taskId, wholeBut(historyLength, context));
    if (snapshot === undefined) throw taskNotFound(task.taskId);
    return snapshot;
  }

  async function headOf(context: CallContext, taskId: string): Promise<TaskHead> {
    const head = await store.head(ownerOf(context), taskId);
    if (head === undefined) throw taskNotFound(taskId);
    return head;
  }

  const handlers: Handlers = {
    async SendMessage(request, context, extensions) {
      const admission = sends.accept(hosted, ownerOf(context), request, context, extensions);
      const { answer } = admission instanceof Promise ? await admission : admission;
      const accepted = await answer;
      if (accepted.kind === "message") return { value: { message: accepted.message } };
      const { task, contextId, input, log } = accepted;
      const historyLength = request.configuration?.historyLength;
      if (log !== undefined) {
        // Its texts stay for as long as the answer does.
        const bytes = log.reduce((sum, { json }) => sum + json.length, 0);
        if (bytes > roomless) await context.reserve?.(bytes);
        const made = wrapped(assembleLog(log, wholeBut(historyLength, context)));
        return counted(made, context, () => [log.filter(({ kind }) => countsInGeneration(kind)).length]);
      }
      if (request.configuration?.returnImmediately !== true) {
        await waitForAnswer({ store, board, scope: task, task, contextId, after: input }, input, context.signal);
      }
      const snapshot = await load(accepted.task, historyLength, context);
      return counted(wrapped(snapshot), context, () => [snapshot.head.generation]);
    },

    async GetTask(request, context) {
      const { id, historyLength, currentGeneration }: GetTaskRequestDraft = request;
      if (currentGeneration !== undefined && hasGenerations(context.version)) {
        const head = await headOf(context, id);
        const { longPoll, clock } = settings;
        const from = { store, board, scope: head.task, task: head.task, contextId: head.contextId, after: head.seq };
        await waitForGeneration(from, head, currentGeneration, longPoll, clock, context.signal);
      }
      return taskOf(await load({ taskId: id, ...ownerOf(context) }, historyLength, context), context);
    },

    async ListTasks(request, context) {
      const owner = ownerOf(context);
      const page = await list(request, owner, context);
      if (!hasGenerations(context.version)) return page;
      const heads = await Promise.all(page.value.tasks.map(({ id }) => store.head(owner, id)));
      return counted(page, context, () => heads.map((head) => head?.generation ?? 0));
    },

    async CancelTask({ id }, context, extensions) {
      const head = await headOf(context, id);
      const origin = {
        taskId: id,
        contextId: head.contextId,
        turn: head.run?.turn ?? 1,
        attempt: head.run?.attempt ?? 1,
        extensions,
        trace: context.trace,
      };
      const time = Math.max(settings.clock.now(), head.statusTime);
      const record = statusRecord(origin, { state: "TASK_STATE_CANCELED" }, "system", "", time);
      if (isTerminal(head.state) || !(await runs.endTask(head, record))) {
        throw new A2AError("TaskNotCancelable", undefined, { metadata: { taskId: id } });
      }
      return taskOf(await load(head.task, undefined, context), context);
    },

    async GetExtendedAgentCard(_request, context) {
      if (hosted.extendedCard === undefined) throw new A2AError("ExtendedAgentCardNotConfigured");
      return { value: hosted.extendedCard(context.principal) };
    },

    CreateTaskPushNotificationConfig: noPush,
    GetTaskPushNotificationConfig: noPush,
    ListTaskPushNotificationConfigs: noPush,
    DeleteTaskPushNotificationConfig: noPush,
  };

  async function list(
    request: ListTasksRequest,
    owner: Owner,
    context: CallContext,
  ): Promise<Reply<ListTasksResponse>> {
    const {
      contextId,
      status,
      pageSize = 50,
      pageToken,
      historyLength,
      statusTimestampAfter,
      includeArtifacts,
    } = request;
    if (!Number.isInteger(pageSize) || pageSize < 1 || pageSize > 100) {
      throw invalidParams([{ field: "pageSize", description: `must be between 1 and 100, got ${pageSize}` }]);
    }
    const scope = JSON.stringify([owner.agent, owner.owner]);
    const page = await store.list(owner, {
      limit: pageSize,
      bytes: settings.limits.pageBytes,
      artifacts: includeArtifacts === true,
      ...(hasRoom(context) && { room: context }),
      ...(contextId !== undefined && { contextId }),
      ...(status !== undefined && { state: status }),
      ...(statusTimestampAfter !== undefined && { since: Date.parse(statusTimestampAfter) }),
      ...(historyLength !== undefined && { history: historyLength }),
      ...(pageToken !== undefined && { after: decodePageToken(pageToken, scope, request) }),
    });
    return pageOf(page.tasks, {
      nextPageToken: page.next === undefined ? "" : encodePageToken(page.next, scope, request),
      pageSize,
      totalSize: page.total,
    });
  }

  async function streamSend(
    request: SendMessageRequest,
    context: CallContext,
    extensions: readonly string[],
  ): Promise<EventStream> {
    const { answer } = await sends.accept(hosted, ownerOf(context), request, context, extensions);
    const counts = hasGenerations(context.version);
    return new EventStream("SendStreamingMessage", async () => {
      const accepted = await answer;
      if (accepted.kind === "message") return messageItem(accepted.message);
      const { task, contextId, input } = accepted;
      const from = { store, board, scope: task, task, contextId, input, ...(hasRoom(context) && { room: context }) };
      const historyLength = request.configuration?.historyLength;
      // Its own first record is the task as it was made; anything else begins with the task as it stands.
      if (accepted.made && historyLength === undefined) return { ...(counts && { generation: 0 }), after: 0, ...from };
      return streamFrom(from, accepted.made ? undefined : context.after, historyLength, counts, context);
    });
  }

  async function subscribe({ id }: SubscribeToTaskRequest, context: CallContext): Promise<EventStream> {
    const { task, contextId, state } = await headOf(context, id);
    if (isTerminal(state) && context.after === undefined) {
      throw new A2AError("UnsupportedOperation", "This task is over: read it with GetTask", {
        metadata: { taskId: id, state },
      });
    }
    const from = { store, board, scope: task, task, contextId, input: 0, ...(hasRoom(context) && { room: context }) };
    const counts = hasGenerations(context.version);
    return new EventStream("SubscribeToTask", () => streamFrom(from, context.after, undefined, counts, context));
  }

  /**
   * The stream of a task after a reader's cursor; `undefined` when there is nothing left to come. Without a cursor, or with
   * one of another log or of what is no longer kept, it begins anew with the Task (D4, §3.1.6).
   */
  async function streamFrom(
    from: Omit<StreamFrom, "after">,
    after: number | undefined,
    historyLength: number | undefined,
    counts: boolean,
    context: CallContext,
  ): Promise<StreamFrom | undefined> {
    const head = after === undefined ? undefined : await store.head(from.scope, from.task.taskId);
    if (after !== undefined && head !== undefined && after <= head.seq && after + 1 >= head.firstSeq) {
      if (isTerminal(head.state) && after === head.seq) return undefined;
      return { ...(counts && { generation: await generationAt({ after, ...from }, after) }), after, ...from };
    }
    const snapshot = await load(from.task, historyLength, context);
    const { seq, generation, state } = snapshot.head;
    return { ...(counts && { generation }), after: seq, first: { item: snapshotItem(snapshot), state }, ...from };
  }

  function open(): void {
    if (isClosed()) throw new A2AError("Unavailable", "The server is stopping", { retryAfter: 1 });
  }

  return {
    // Not an async function of its own: every message comes through here.
    call<Name extends UnaryName>(
      operation: Name,
      request: UnaryOperations[Name]["request"],
      context: CallContext,
    ): Promise<Reply<UnaryOperations[Name]["response"]>> {
      try {
        open();
        checkCapability(hosted, operation);
        const extensions = activate(hosted, context);
        const reply = handlers[operation](request, context, extensions);
        // Not a copy: that would parse what is to go out as text.
        return extensions.length === 0 ? reply : reply.then((each) => Object.assign(each, { extensions }));
      } catch (error) {
        return Promise.reject(toA2AError(error));
      }
    },
    async stream(operation: StreamName, request, context): Promise<StreamReply> {
      open();
      checkCapability(hosted, operation);
      const extensions = activate(hosted, context);
      const batches =
        operation === "SubscribeToTask"
          ? await subscribe(request as SubscribeToTaskRequest, context)
          : await streamSend(request as SendMessageRequest, context, extensions);
      return extensions.length === 0 ? { batches } : { batches, extensions };
    },
  };
}

/** Webhooks come with a later version; until then no card declares them, and `checkCapability` answers before this. */
function noPush(): Promise<never> {
  return Promise.reject(new A2AError("PushNotificationNotSupported"));
}

/** What of a task goes into an answer that a caller may shorten by its history (§3.2.4). */
function wholeBut(historyLength: number | undefined, context: CallContext): LoadOptions {
  if (hasRoom(context)) {
    return historyLength === undefined
      ? { artifacts: true, room: context }
      : { artifacts: true, history: historyLength, room: context };
  }
  return historyLength === undefined ? { artifacts: true } : { artifacts: true, history: historyLength };
}

/** Whether somebody counts what answers to this caller hold. */
function hasRoom(context: CallContext): context is CallContext & Room {
  return context.reserve !== undefined;
}
