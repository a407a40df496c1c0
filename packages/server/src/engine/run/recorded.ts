import type { Logger } from "@parley/a2a/internal/base/index";
import type { NewRecord } from "@parley/a2a/internal/model/index";
import type { FeatureEffect, TaskEffect, TaskKey } from "../../store/index.ts";
import { LogWriter, type AppendResult, type WriterInit, type WriterStart } from "../log/index.ts";
import type { HostedAgent } from "../shared/options.ts";
import type { FirstMessageInit, RunDeps, Waiting } from "./phase.ts";
import type { Recorder } from "./recorder.ts";
import type { StoredCheckpoint, TurnInput } from "./turn-input.ts";

/* What a recorder makes, for which task, and what writes it. */

/** What is stored for events that an agent yielded together. */
export interface Recorded {
  readonly records: readonly NewRecord[];
  /** What extensions keep with each of the records; absent where the turn has no extensions. */
  readonly kept: readonly (readonly FeatureEffect[])[] | undefined;
  readonly effects: readonly TaskEffect[];
  /** The agent yielded a status after its own question, which ends the turn: the status and all after it are not stored. */
  readonly endsTurn: boolean;
  /** The turn has ended with the question of a delegation, and goes on with the answer. */
  readonly suspends?: true;
  /** The turn waits, and goes on when one of its waits is over. */
  readonly waits?: Waiting;
}

/** The task that records are made for. */
export interface RecordedTask {
  readonly key: TaskKey;
  readonly contextId: string;
  /** The task is not stored yet. */
  readonly isNew: boolean;
  /** When the message of the first turn of the run came; milliseconds since the Unix epoch. */
  readonly arrived: number;
  /** Adds the task to each line. */
  readonly logger: Logger;
}

/** Events as records, before they are compared with those of a lost run. */
export interface Read {
  readonly records: readonly NewRecord[];
  /** What extensions keep with each of the records; absent where the turn has no extensions. */
  readonly kept: readonly (readonly FeatureEffect[])[] | undefined;
  readonly checkpoints: readonly StoredCheckpoint[];
  readonly endsTurn: boolean;
}

/** What the run of a task is made of. */
export interface TaskRunParts {
  readonly hosted: HostedAgent;
  readonly key: TaskKey;
  readonly contextId: string;
  readonly input: TurnInput;
  readonly recorder: Recorder;
  /** The task as it is stored, or how it is to be made. */
  readonly start: WriterStart | NewTask;
}

/** A task that the message of `TaskRunParts.input` makes. */
export interface NewTask extends Pick<FirstMessageInit, "once" | "kept" | "result"> {
  readonly run: null;
  readonly state: "TASK_STATE_SUBMITTED" | "TASK_STATE_WORKING";
}

/** Writes the log of a task. */
export function writerOf(
  { committer, liveLogs, settings }: RunDeps,
  files: WriterInit["files"],
  { key: task, contextId, recorder: source, start }: TaskRunParts,
  onResult: (result: AppendResult) => void,
): LogWriter {
  const init = { committer, liveLogs, settings, task, contextId, onResult, source, files };
  return new LogWriter(start.run === null ? init : { ...init, start });
}
