export { Pace } from "./drive.ts";
export { safeSentences, type RunDeps } from "./phase.ts";
export { Run, type OwnDeps } from "./run.ts";
export { checkAddresses, hasLarge } from "./run-files.ts";
export {
  changed,
  eventKey,
  eventRow,
  hasWaits,
  isDueBy,
  isEvent,
  isOver,
  isQueued,
  isWaitOf,
  queuedJson,
  queuedTask,
  queueKey,
  queueRow,
  takeoverJson,
  type QueuedRun,
  type StoredEvent,
} from "./task-rows.ts";
export {
  hasAskedForOther,
  messageOf,
  readResumed,
  seenTurn,
  waitingRun,
  type FirstResult,
  type RunInit,
  type TaskRunInit,
  type Waiting,
} from "./turn-input.ts";
