import type { NewRecord } from "@parley/a2a/internal/model/index";
import {
  replayFeature,
  stepFeature,
  type Store,
  type StoredRun,
  type TaskEffect,
  type TaskKey,
} from "../../store/index.ts";
import { isBegun } from "./task-rows.ts";

/** Whether a process has crashed during the run, so that the run may be the cause. */
export function isSuspect(run: StoredRun | null | undefined): run is StoredRun {
  return (run?.deaths ?? 0) > 0;
}

/** Whether these writes are progress beyond the lost run. The start of a step is not progress, because the step may cause the crash. */
export function isProgress(records: readonly NewRecord[], effects: readonly TaskEffect[]): boolean {
  if (records.length > 0) return true;
  return effects.some(
    (each) =>
      each.effect === "checkpoint" ||
      (each.effect === "feature" && each.op === "set" && each.feature === stepFeature && !isBegun(each.key)),
  );
}

/** The maximum that stores accept for `outlived`. Every run stores a record, which resets the count, long before that. */
const maxOutlived = 10_000;

interface SuspectedRun {
  readonly store: Pick<Store, "features">;
  readonly task: TaskKey;
  isStopped(): boolean;
  append(effects: readonly TaskEffect[]): void;
  flush(): Promise<void>;
}

/** The suspicion that a run, which was taken over from a crashed process, caused the crash. It ends when the run makes progress. */
export class CrashSuspicion {
  readonly #of: SuspectedRun;
  #run: StoredRun;
  #excused = false;
  /** `seq` of the last replayed event. 0: not known yet. */
  #replayed = 0;
  #isOver = false;

  constructor(of: SuspectedRun, run: StoredRun) {
    this.#of = of;
    this.#run = run;
  }

  /** Called when the run has made progress. */
  end(): void {
    this.#isOver = true;
  }

  /** Resets the run's crash count, because it has run for a while since its start. */
  clear(): void {
    const { turn, attempt, input, deaths = 0 } = this.#run;
    const outlived = Math.min(deaths, maxOutlived);
    // This may be called twice after one start.
    if (outlived !== this.#run.outlived) this.#store({ turn, attempt, input, deaths, outlived });
  }

  /** Called when the server stops. If it is killed before the run ends, this does not count as a crash of the run. */
  excuse(): void {
    this.#store(withoutCrash(this.#run));
    this.#excused = true;
  }

  /** Called when another run began while this run was on trial alone. Resolves once the store has noted that. */
  async joined(): Promise<void> {
    if (this.#run.alone !== true) return;
    const { alone: _, ...run } = this.#run;
    this.#store(run);
    await this.#of.flush().catch(() => {});
  }

  /** Effects for releasing the task to another process: subtract the crash that the takeover counted in advance. */
  get handBack(): readonly TaskEffect[] {
    return this.#excused ? [] : [{ effect: "run", run: withoutCrash(this.#run) }];
  }

  /** Stores the progress of the replay. If the run gets further than the last attempt, that attempt's crash no longer counts. */
  noteReplay(to: number, input: number): void {
    if (to <= this.#replayed) return;
    const begins = this.#replayed === 0;
    this.#replayed = to;
    if (begins) void this.#storeReplay(input).catch(() => {});
  }

  /** `input`: `seq` of the turn's message. A stored position at or before this `seq` belongs to an earlier turn, and does not count. */
  async #storeReplay(input: number): Promise<void> {
    const { store, task } = this.#of;
    const [row] = await store.features(task, task.taskId, replayFeature);
    const before = Number(row?.value ?? 0);
    for (let noted = before; !this.#of.isStopped() && !this.#isOver; await this.#of.flush()) {
      if (this.#replayed <= noted) return void (this.#replayed = 0);
      noted = this.#replayed;
      if (before > input) this.clear();
      this.#of.append([{ effect: "feature", op: "set", feature: replayFeature, key: "seq", value: `${noted}` }]);
    }
  }

  #store(run: StoredRun): void {
    this.#run = run;
    this.#of.append([{ effect: "run", run }]);
  }
}

/** The run without the crash that its takeover counted in advance. */
function withoutCrash({ turn, attempt, input, deaths = 1, outlived = 0 }: StoredRun): StoredRun {
  const before = deaths - 1;
  return { turn, attempt, input, deaths: before, outlived: Math.min(outlived, before) };
}
