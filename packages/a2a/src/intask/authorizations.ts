import { createSeal, sealKeyring } from "../seal/index.ts";
import type { TaskKey } from "../store/index.ts";
import { takeAnswer } from "./answer.ts";
import { answerCallback } from "./callback.ts";
import type { Authorizations, InTaskHost, InTaskSettings } from "./port.ts";
import { openRequest } from "./request.ts";
import { inTaskFeature } from "./row.ts";

/** Puts the parts together. */
export function createAuthorizations(settings: InTaskSettings, host: InTaskHost): Authorizations {
  const seal = createSeal(() => keyring()());
  let derived: ReturnType<typeof sealKeyring> | undefined;
  const keyring = () => (derived ??= sealKeyring(settings.keys(), "parley authorization seal 1"));
  const waits = new Waits();
  const parts = { settings, host, seal, waits };
  return {
    open: (init, turn) => openRequest(parts, init, turn),
    isAwaited: async (task) => (await host.store.features(task, task.taskId, inTaskFeature)).length > 0,
    take: (message, answer) => takeAnswer(parts, message, answer),
    changed: (task) => waits.changed(task),
    callback: (request) => answerCallback(parts, request),
  };
}

/** The turns of this process that wait, by task. */
export class Waits {
  readonly #waiting = new Map<string, Set<() => void>>();

  /** Calls `run` when something of the task was stored here. The returned function ends it. */
  on(task: TaskKey, run: () => void): () => void {
    const name = nameOf(task);
    const waiting = this.#waiting.get(name) ?? new Set();
    this.#waiting.set(name, waiting.add(run));
    return () => {
      waiting.delete(run);
      if (waiting.size === 0 && this.#waiting.get(name) === waiting) this.#waiting.delete(name);
    };
  }

  changed(task: TaskKey): void {
    for (const run of this.#waiting.get(nameOf(task)) ?? []) run();
  }
}

/** No id contains NUL. */
function nameOf({ agent, taskId }: TaskKey): string {
  return `${agent}\0${taskId}`;
}
