import type { LogFields, Logger } from "../base/index.ts";
import { BoundedMap, memoryOf } from "../base/bounded-map.ts";
import type { Warns } from "./failures.ts";

/** How many bytes of tasks and their failures are remembered. What is forgotten is told again. */
const rememberedBytes = 1 << 20;

/** Tells of each failure of an extension once for a task: an agent may yield any number of events, and each fails alike. */
export class ToldByTask {
  readonly #logger: Logger;
  readonly #told = new BoundedMap<string>({ bytes: rememberedBytes, bytesOf: memoryOf });

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  /** What tells of the failures in a task. `undefined`: a direct reply, which makes no task, and has one event. */
  of(taskId: string | undefined): Warns {
    if (taskId === undefined) return this.#logger;
    return { warn: (message, fields = {}) => this.#warn(taskId, message, fields) };
  }

  #warn(taskId: string, message: string, fields: LogFields): void {
    const key = JSON.stringify([taskId, fields["extension"], fields["hook"], message, fields["problems"]]);
    if (this.#told.get(key) !== undefined) return;
    this.#told.set(key, "");
    this.#logger.warn(message, { ...fields, taskId });
  }
}
