export { Pace } from "./pace.ts";
export {
  safeSentences,
  type FirstResult,
  type OwnDeps,
  type RunInit,
  type RunDeps,
  type TaskRunInit,
  type Waiting,
} from "./phase.ts";
export { Run } from "./run.ts";
export {
  changed,
  eventKey,
  eventRow,
  hasWaits,
  isDueBy,
  isEvent,
  isOver,
  isWaitOf,
  type StoredEvent,
} from "./step-rows.ts";
export { isQueued, queuedTask, queueKey, queueRow, type QueuedRun } from "./queued.ts";
export { hasAskedForOther, messageOf, readResumed, seenTurn, waitingRun } from "./inputs.ts";
export { checkAddresses, hasLarge } from "./run-files.ts";
