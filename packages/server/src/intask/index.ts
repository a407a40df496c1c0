import type { Authorizations, InTaskHost, InTaskSettings } from "./port.ts";
import { inTaskFeature } from "./row.ts";

export type { Authorizations, AuthorizingTurn, InTaskOptions, InTaskSettings, TakenAnswer } from "./port.ts";
export { inTaskFeature };

type Loaded = Omit<Authorizations, "isAwaited">;

/** The authorizations of a server. Their code is loaded by the first request of an agent. */
export function lazyAuthorizations(settings: InTaskSettings, host: InTaskHost): Authorizations {
  let loaded: Loaded | undefined;
  let loading: Promise<Loaded> | undefined;
  const load = (): Promise<Loaded> =>
    (loading ??= import("./authorizations.ts").then(({ createAuthorizations }) => {
      loaded = createAuthorizations(settings, host);
      return loaded;
    }));
  return {
    open: async (init, turn) => (await load()).open(init, turn),
    isAwaited: async (task) => (await host.store.features(task, task.taskId, inTaskFeature)).length > 0,
    take: async (message, answer) => (await load()).take(message, answer),
    // Before the module is loaded, no turn waits.
    changed: (task) => loaded?.changed(task),
    callback: async (request, bodies) => (await load()).callback(request, bodies),
  };
}
