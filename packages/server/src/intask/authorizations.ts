import { createSeal, sealKeyring } from "../seal/index.ts";
import { takeAnswer } from "./answer.ts";
import { answerCallback } from "./callback.ts";
import type { Authorizations, InTaskHost, InTaskSettings } from "./port.ts";
import { openRequest } from "./request.ts";
import { inTaskFeature } from "./row.ts";
import { Waits } from "./waits.ts";

/** Puts the parts together. */
export function createAuthorizations(settings: InTaskSettings, host: InTaskHost): Authorizations {
  const seal = createSeal(() => keyring()());
  let derived: ReturnType<typeof sealKeyring> | undefined;
  const keyring = () => (derived ??= sealKeyring(settings.keys(), "parley authorization seal 1"));
  const waits = new Waits(host);
  const parts = { settings, host, seal, waits };
  return {
    open: (init, turn) => openRequest(parts, init, turn),
    isAwaited: async (task) => (await host.store.features(task, task.taskId, inTaskFeature)).length > 0,
    take: (message, answer) => takeAnswer(parts, message, answer),
    changed: (task) => waits.changed(task),
    callback: (request, bodies) => answerCallback(parts, request, bodies),
  };
}
