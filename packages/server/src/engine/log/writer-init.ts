import type { NewRecord, TaskState } from "@parley/a2a/internal/model/index";
import type { FeatureEffect, StoredRun, TaskKey } from "../../store/index.ts";
import type { EngineSettings } from "../shared/settings.ts";
import type { Additions } from "./additions.ts";
import type { AppendResult } from "./append.ts";
import type { Committer } from "./committer.ts";
import type { LiveLogs } from "./live-log.ts";

/* What the writer of a log is made with. */

/** A task as it is stored when a run begins to continue its log. */
export interface WriterStart {
  readonly seq: number;
  readonly state: TaskState;
  readonly fence: number;
  readonly run: StoredRun;
  /** Whether the log may hold messages for later turns, as after a run in another process. */
  readonly mayHaveMessages: boolean;
}

export interface WriterInit {
  readonly committer: Committer;
  readonly liveLogs: LiveLogs;
  readonly settings: Pick<EngineSettings, "clock" | "lease" | "limits">;
  readonly task: TaskKey;
  readonly contextId: string;
  /** Absent: the first records create the task. */
  readonly start?: WriterStart;
  /** Has what the records can do without. */
  readonly source?: { readonly additions: Additions | undefined };
  /** The rows of the files that a record is the first to refer to. They stay out where the record does. */
  readonly files?: ((record: NewRecord) => readonly FeatureEffect[]) | undefined;
  /** Called after each append, in their order. */
  readonly onResult: (result: AppendResult) => void;
}
