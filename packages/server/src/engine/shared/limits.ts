/** Limits that keep one task, or one owner, from using up what others need. */
export interface EngineLimits {
  /** How many events of one turn may wait for their commit. Default 256. */
  readonly pendingEvents?: number;
  /** The same in bytes of JSON. Default 4 MiB. */
  readonly pendingBytes?: number;
  /** How many of its newest records a running task keeps in memory for its readers. Default 256. */
  readonly liveRecords?: number;
  /** The same in bytes of JSON. Default 1 MiB. */
  readonly liveBytes?: number;
  /** Largest event of an agent, in bytes of JSON. Default 16 MiB. */
  readonly eventBytes?: number;
  /** Largest checkpoint, and largest state of a task and of a context, in bytes of JSON. Default 4 MiB. */
  readonly stateBytes?: number;
  /**
   * Largest task: its messages, artifacts and statuses together, in bytes of JSON. A message beyond it is refused. An
   * event beyond it fails the task. Default 32 MiB.
   */
  readonly taskBytes?: number;
  /**
   * How much this process may hold at one time of the tasks that it runs and the messages that they answer, in bytes of
   * JSON. One owner gets half of it at most. A message that does not fit waits for ten seconds and is then refused as
   * `Unavailable`. Lost tasks wait until they fit. Messages below 64 KiB are accepted until the limit is exceeded by half.
   * Default 256 MiB.
   */
  readonly totalBytes?: number;
  /** Largest page of a list, in bytes of JSON. A task that is larger gets a page of its own. Default 8 MiB. */
  readonly pageBytes?: number;
  /** Most parts of a message. A message with more is refused. Default 10,000. */
  readonly messageParts?: number;
  /**
   * Largest metadata of a request with a message, those of the message and its parts among them: their names and texts, and 16 bytes
   * for each value. A message with more is refused. Default 1 MiB.
   */
  readonly metadataBytes?: number;
  /**
   * Most tasks of one owner that agents work on at a time in this process, and messages that are not a task yet. A message that would
   * begin another one is refused (`TooManyRequests`). A task that waits for its caller does not count. Default: no limit.
   */
  readonly tasksPerCaller?: number;
  /**
   * Most runs of this process at a time. A message that would begin another one makes its task as `TASK_STATE_SUBMITTED`, and a message to a
   * task that waits for it puts that back to it. Such tasks wait in the store, in order for each owner and with the owners in turn, and any
   * process with room begins the next. A run that only waits, for another agent or an authorization, does not count. Default 1,000.
   */
  readonly runs?: number;
  /**
   * Most tasks of one owner that are submitted and wait for a process with room, in all processes that share the store. A message that would
   * make another one is refused (`TooManyRequests`). Default 10,000.
   */
  readonly queuedPerCaller?: number;
  /**
   * How long a promise of an extension's hook may take, in milliseconds. Beyond it the hook has failed, and what it gives later is dropped.
   * Default 30 s.
   */
  readonly hookTimeout?: number;
}
