import type { Clock } from "@parley/a2a/internal/base/index";
import type { Store } from "../../src/store/index.ts";
import { bound } from "./support.ts";

/** Returns a store that tracks its processes, for several engines. `silent`: processes whose heartbeats are lost. */
export function counted(store: Store, clock: Pick<Clock, "elapsed">) {
  const rows = new Map<string, { beats: number; at: number }>();
  const silent = new Set<string>();
  const beat = (name: string): void =>
    void rows.set(name, { beats: (rows.get(name)?.beats ?? 0) + 1, at: clock.elapsed() });
  const shared: Store = {
    ...bound(store),
    nodes: {
      async beat(name: string) {
        if (!silent.has(name)) beat(name);
        return [...rows].map(([each, { beats, at }]) => ({ name: each, beats, silent: clock.elapsed() - at }));
      },
      async forget(names: readonly string[]) {
        for (const name of names) rows.delete(name);
      },
    },
    close: async () => {},
  };
  return { shared, silent };
}
