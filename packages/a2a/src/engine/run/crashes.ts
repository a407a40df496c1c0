import type { NewRecord } from "../../model/index.ts";
import type { StoredRun, TaskEffect } from "../../store/index.ts";

/*
 * A run that was taken over is on trial, since the process before may have crashed because of it. `Run.deaths` counts that
 * as a crash until something new of the run is stored.
 */

export function isOnTrial(run: StoredRun | null): boolean {
  return (run?.deaths ?? 0) > 0;
}

/** Whether these show that the run gets somewhere. */
export function isProgress(records: readonly NewRecord[], effects: readonly TaskEffect[]): boolean {
  return records.length > 0 || effects.some(({ effect }) => effect === "checkpoint");
}

/** The run once it has got somewhere: it is one like any other. */
export function cleared({ turn, attempt, input }: StoredRun): StoredRun {
  return { turn, attempt, input };
}

/** The run once the process has survived it for a while: it keeps its crashes, and is no longer alone to blame. */
export function survived({ alone: _, ...run }: StoredRun): StoredRun {
  return run;
}

/** The run when it is given back in good order, which is no crash. */
export function handedBack({ turn, attempt, input, deaths = 1 }: StoredRun): StoredRun {
  return { turn, attempt, input, deaths: deaths - 1 };
}
