import type { CallContext } from "../../protocol/index.ts";
import type { LoadOptions, Owner, Room, Snapshot, TaskHead, TaskKey } from "../../store/index.ts";
import type { LiveLogs, Position } from "../log/index.ts";
import type { EngineSettings } from "../options.ts";
import { taskNotFound } from "../refusals.ts";

/** The tasks of one agent, as its callers may see them: what all operations on tasks share. */
export class AgentTasks {
  readonly settings: EngineSettings;
  readonly #agentId: string;
  readonly #liveLogs: LiveLogs;

  constructor(agentId: string, settings: EngineSettings, liveLogs: LiveLogs) {
    this.#agentId = agentId;
    this.settings = settings;
    this.#liveLogs = liveLogs;
  }

  /** Who owns what the caller makes, and whose tasks the caller sees. */
  ownerOf(context: CallContext): Owner {
    return { agent: this.#agentId, owner: this.settings.ownerOf(context.principal) };
  }

  /** How a task of the caller stands; rejects with `TaskNotFound`. */
  async head(taskId: string, context: CallContext): Promise<TaskHead> {
    const head = await this.settings.store.head(this.ownerOf(context), taskId);
    if (head === undefined) throw taskNotFound(taskId);
    return head;
  }

  /** A task with its artifacts and the newest `historyLength` messages; rejects with `TaskNotFound`. */
  async load(task: TaskKey, historyLength: number | undefined, context: CallContext): Promise<Snapshot> {
    const snapshot = await this.settings.store.load(task, task.taskId, wholeBut(historyLength, context));
    if (snapshot === undefined) throw taskNotFound(task.taskId);
    return snapshot;
  }

  /** The log of a task, to be read after a `seq`. `context`: of a caller who is given what is read. */
  position({ task, contextId }: Pick<TaskHead, "task" | "contextId">, after: number, context?: CallContext): Position {
    const { store } = this.settings;
    const position = { store, liveLogs: this.#liveLogs, scope: task, task, contextId, after };
    return context !== undefined && hasRoom(context) ? { ...position, room: context } : position;
  }
}

/** What of a task goes into an answer that its caller may shorten by its history (A2A 1.0 §3.2.4). */
export function wholeBut(historyLength: number | undefined, context: CallContext): LoadOptions {
  if (hasRoom(context)) {
    return historyLength === undefined
      ? { artifacts: true, room: context }
      : { artifacts: true, history: historyLength, room: context };
  }
  return historyLength === undefined ? { artifacts: true } : { artifacts: true, history: historyLength };
}

/** Whether the server counts what answers to this caller hold in memory. */
export function hasRoom(context: CallContext): context is CallContext & Room {
  return context.reserve !== undefined;
}
