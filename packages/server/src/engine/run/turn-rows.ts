import type { Clock } from "@parley/a2a/internal/base/index";
import { A2AError } from "@parley/a2a/internal/model/index";
import type { TurnRows } from "@parley/a2a/internal/protocol/index";
import type { FeatureEffect, OnceEffect, Store, TaskKey } from "../../store/index.ts";
import { keepIn } from "../log/index.ts";
import type { Phase } from "./phase.ts";

/** What the rows of a turn need of its run. */
interface RowsHost {
  readonly store: Pick<Store, "append" | "features" | "once">;
  readonly clock: Clock;
  readonly task: TaskKey;
  /** Which turn of the task, from 1. */
  readonly turn: number;
  readonly phase: () => Pick<Phase, "fence" | "flush" | "keep" | "makeTask">;
}

/** Owner of claimed names. Those of principals are JSON. */
const claims = "claims of extensions";
const day = 24 * 60 * 60_000;

/** The rows that an extension keeps with the task of a turn. `feature`: its URI. */
export function turnRows(feature: string, { store, clock, task, turn, phase }: RowsHost): TurnRows {
  return {
    read: () => store.features(task, task.taskId, feature),
    async store(changes) {
      const effects: FeatureEffect[] = [];
      const keep = keepIn(effects);
      for (const change of changes) keep({ feature, ...change });
      phase().makeTask();
      await phase().keep(effects);
    },
    async claim(name, until, family = feature) {
      const { agent, taskId } = task;
      const now = Math.floor(clock.now());
      // Names of one day go together, so that no sweep deletes very many at once.
      const context = { agent, owner: claims, contextId: `${family} ${Math.floor(now / day)}` };
      const hash = `${taskId} ${turn}`;
      const key = `${family} ${name}`;
      const held = await store.once(context, key, now);
      if (held !== undefined) return held.hash === hash;
      // After a crash only a turn of a stored task goes on. The name of another one would be taken, and used by nobody.
      if (phase().fence === undefined) {
        phase().makeTask();
        await phase().flush();
      }
      const once: OnceEffect = { effect: "once", key, hash, now, until: Math.ceil(until) };
      const [outcome] = await store.append([{ context, effects: [once] }]);
      if (outcome?.ok === true) return true;
      if (outcome?.reason !== "duplicate") throw new A2AError("Unavailable", "The name could not be claimed");
      return outcome.once?.hash === hash;
    },
  };
}
