import type { A2AErrorCode, TaskState } from "../model/index.ts";
import type { OperationName } from "./operations.ts";

/**
 * Something that an operator has to be able to look up later: who did what, to which task, and what came of it. It never has a
 * credential or the content of a message.
 */
export interface AuditRecord {
  /**
   * What happened.
   * - `authentication`: a caller was refused, because it is not known.
   * - `authorization`: a known caller was refused.
   * - `limit`: a caller was refused, because of a limit.
   * - `task-created`, `task-state`: a task was created, or has changed its state.
   * - `credential`: an agent got or used a credential, or a server sent one.
   * - `administration`: an operator has changed something.
   */
  readonly event:
    "authentication" | "authorization" | "limit" | "task-created" | "task-state" | "credential" | "administration";
  /** Whether it was done or refused. */
  readonly outcome: "success" | "refused" | "failed";
  /** When, in milliseconds since the Unix epoch. */
  readonly time: number;
  /** Who: the subject of the principal. Absent: it is not known. */
  readonly subject?: string;
  /** The organization of the principal. */
  readonly organization?: string;
  /** The IP address of the caller, where the host knows it. */
  readonly address?: string;
  /** The id of the agent. */
  readonly agent?: string;
  /** The operation that was called. */
  readonly operation?: OperationName;
  /** The task. */
  readonly taskId?: string;
  /** The state that the task has now. */
  readonly state?: TaskState;
  /** Trace id of the call (W3C Trace Context), 32 hexadecimal digits. */
  readonly traceId?: string;
  /** Code of the error that the caller got. */
  readonly code?: A2AErrorCode;
  /** What exactly was done, in a few fixed words: `push.retry`, `authorize.callback`. */
  readonly action?: string;
}

/** Takes audit records, in the order in which things happen. What it throws is logged, and changes nothing. */
export type Audit = (record: AuditRecord) => void;
