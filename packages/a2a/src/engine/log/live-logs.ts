import { ChurnMap } from "../churn-map.ts";
import type { TaskKey } from "../../store/index.ts";
import { LiveLog, type LiveLimits } from "./live-log.ts";

/** The live logs of an engine, by task: one for each task that has a run or a reader in this process. */
export class LiveLogs {
  readonly #logs = new ChurnMap<string, LiveLog>();
  readonly #limits: LiveLimits;
  #closed: { readonly error: unknown } | undefined;

  constructor(limits: LiveLimits) {
    this.#limits = limits;
  }

  /** The live log of a task, made when there is none. Give it back with `release`. */
  acquire(task: TaskKey, contextId: string): LiveLog {
    let log = this.#logs.get(task.taskId);
    if (log === undefined) {
      log = new LiveLog(task, contextId, this.#limits);
      this.#logs.set(task.taskId, log);
      if (this.#closed !== undefined) log.close(this.#closed.error);
    }
    log.users += 1;
    return log;
  }

  release(log: LiveLog): void {
    log.users -= 1;
    if (log.users === 0) this.#logs.delete(log.task.taskId);
  }

  find(taskId: string): LiveLog | undefined {
    return this.#logs.get(taskId);
  }

  /** Another process may have appended: to one task, or, without `taskId`, to any that this process does not run. */
  notifyRemote(taskId?: string): void {
    if (taskId !== undefined) this.#logs.get(taskId)?.notify();
    else for (const log of this.#logs.values()) if (log.head === undefined) log.notify();
  }

  /** The server stops: nobody waits for anything any more. */
  close(error: unknown): void {
    this.#closed = { error };
    for (const log of this.#logs.values()) log.close(error);
  }
}
