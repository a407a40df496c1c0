import type { LogFields, Logger } from "../base/index.ts";
import { BoundedMap, memoryOf } from "../base/bounded-map.ts";
import type { Warns } from "./failures.ts";

/** How many bytes of tasks and their failures are remembered. What is forgotten is told again. */
const rememberedBytes = 1 << 20;

/** Tells of each failure of an extension once for a task: an agent may yield any number of events, and each fails alike. */
export class ToldByTask {
  readonly #told = new BoundedMap<string>({ bytes: rememberedBytes, bytesOf: memoryOf });

  /** What tells of the failures in a task. `undefined`: a direct reply, which makes no task, and has one event. */
  of(taskId: string | undefined, logger: Logger): Warns {
    if (taskId === undefined) return logger;
    return { warn: (message, fields = {}) => this.#warn(taskId, logger, message, fields) };
  }

  #warn(taskId: string, logger: Logger, message: string, fields: LogFields): void {
    const key = JSON.stringify([taskId, fields["extension"], fields["hook"], message, fields["problems"]]);
    if (this.#told.get(key) !== undefined) return;
    this.#told.set(key, "");
    logger.warn(message, { ...fields, taskId });
  }
}
