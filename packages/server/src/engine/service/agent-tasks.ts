import { wrapped } from "@parley/a2a/internal/base/json-text";
import {
  hasGenerations,
  isTerminal,
  type ListTasksResponse,
  type SendMessageResponse,
  type Task,
} from "@parley/a2a/internal/model/index";
import { TextPayload, type CallContext, type Reply } from "@parley/a2a/internal/protocol/index";
import {
  taskJson,
  type ListedTask,
  type LoadOptions,
  type Owner,
  type Room,
  type Snapshot,
  type TaskHead,
  type TaskKey,
} from "../../store/index.ts";
import { generationAt, snapshotItem, type LiveLogs, type Position, type StreamFrom } from "../log/index.ts";
import { taskNotFound } from "../shared/errors.ts";
import type { EngineSettings } from "../shared/settings.ts";
import type { CheckedAgent } from "./checks.ts";

/** The start that a reader requests for the stream of a task. */
export interface WantedStream {
  /** The last `seq` that the reader received. `undefined`: the stream begins with the current task. */
  readonly after: number | undefined;
  /** For the stream of a send: `seq` of its message. */
  readonly input: number;
  readonly historyLength: number | undefined;
}

/** The tasks of one agent as its callers may see them. All operations on tasks use this class. */
export class AgentTasks {
  readonly hosted: CheckedAgent;
  readonly settings: EngineSettings;
  readonly #liveLogs: LiveLogs;
  /** An owner without data, so that a hidden task takes the same code path as an unknown one. */
  #nobody: string | undefined;

  constructor(hosted: CheckedAgent, settings: EngineSettings, liveLogs: LiveLogs) {
    this.hosted = hosted;
    this.settings = settings;
    this.#liveLogs = liveLogs;
  }

  /** The owner of the tasks that the caller creates and sees. */
  ownerOf({ principal, hidden }: CallContext): Owner {
    return {
      agent: this.hosted.id,
      owner: hidden === true ? (this.#nobody ??= crypto.randomUUID()) : this.settings.ownerOf(principal),
    };
  }

  /** The head of a task of the caller. Rejects with `TaskNotFound`. */
  async head(taskId: string, context: CallContext): Promise<TaskHead> {
    const head = await this.settings.store.head(this.ownerOf(context), taskId);
    if (head === undefined) throw taskNotFound(taskId);
    return head;
  }

  /** A task with its artifacts and the newest `historyLength` messages. Rejects with `TaskNotFound`. */
  async load(task: TaskKey, historyLength: number | undefined, context: CallContext): Promise<Snapshot> {
    const snapshot = await this.settings.store.load(task, task.taskId, this.wholeBut(historyLength, context));
    if (snapshot === undefined) throw taskNotFound(task.taskId);
    return snapshot;
  }

  /** Options to load a task for an answer whose history the caller may limit (A2A 1.0 §3.2.4). */
  wholeBut(historyLength: number | undefined, context: CallContext): LoadOptions {
    const { mergeTextParts } = this.settings;
    return {
      artifacts: true,
      mergeTextParts,
      ...(historyLength !== undefined && { history: historyLength }),
      ...(hasRoom(context) && { room: context }),
    };
  }

  /** A position in the log of a task, after a `seq`. `context`: the call of the caller who receives the records. */
  position({ task, contextId }: Pick<TaskHead, "task" | "contextId">, after: number, context?: CallContext): Position {
    const { store } = this.settings;
    const position = { store, liveLogs: this.#liveLogs, scope: task, task, contextId, after };
    return context !== undefined && hasRoom(context) ? { ...position, room: context } : position;
  }

  /**
   * The start of a task's stream; `undefined` if no more events can follow. The stream continues after a cursor that
   * is in the log. Without a cursor, or if compaction removed its records, the stream begins with the Task (A2A 1.0 §3.1.6).
   */
  async stream(
    of: Pick<TaskHead, "task" | "contextId">,
    { after, input, historyLength }: WantedStream,
    context: CallContext,
  ): Promise<StreamFrom | undefined> {
    const counts = hasGenerations(context.version);
    const head = after === undefined ? undefined : await this.settings.store.head(of.task, of.task.taskId);
    if (after !== undefined && head !== undefined && after <= head.seq && after + 1 >= head.firstSeq) {
      if (isTerminal(head.state) && after === head.seq) return undefined;
      const position = this.position(of, after, context);
      return { ...position, input, ...(counts && { generation: await generationAt(position, after) }) };
    }
    const snapshot = await this.load(of.task, historyLength, context);
    const { seq, generation, state } = snapshot.head;
    const first = { item: snapshotItem(snapshot), state };
    return { ...this.position(of, seq, context), input, first, ...(counts && { generation }) };
  }
}

/** Whether the server limits the memory of answers to this caller. */
export function hasRoom(context: CallContext): context is CallContext & Room {
  return context.reserve !== undefined;
}

/* Answers are built from stored text. Tasks are parsed only if their value is read. */

/** A reply with the generations of its tasks by id, if the version of the call has them (1.1 draft, §3.2.7). */
export function counted<T>(
  reply: Reply<T>,
  context: CallContext,
  generations: () => ReadonlyMap<string, number>,
): Reply<T> {
  return hasGenerations(context.version) ? { generations: generations(), ...reply } : reply;
}

export function taskReply(snapshot: Snapshot, context: CallContext): Reply<Task> {
  const { head } = snapshot;
  const payload = new TextPayload<Task>(taskJson(snapshot));
  return counted({ payload }, context, () => new Map([[head.task.taskId, head.generation]]));
}

export function wrappedTask(task: ListedTask): Reply<SendMessageResponse> {
  return { payload: new TextPayload(wrapped("task", taskJson(task))) };
}

export function pageOf(tasks: readonly ListedTask[], rest: Omit<ListTasksResponse, "tasks">): Reply<ListTasksResponse> {
  const texts = tasks.map(taskJson);
  const end = `],${JSON.stringify(rest).slice(1)}`;
  if (texts.every((text) => typeof text === "string")) {
    return { payload: new TextPayload(`{"tasks":[${texts.join(",")}${end}`) };
  }
  const pieces = texts.flatMap((text, index) => [
    index === 0 ? '{"tasks":[' : ",",
    ...(typeof text === "string" ? [text] : text),
  ]);
  return { payload: new TextPayload([...pieces, end]) };
}
