export {
  acquireLease,
  Additions,
  endOfRun,
  endOfSuspendedRun,
  keepIn,
  lossOf,
  tooManyRows,
  type AppendResult,
  type Loss,
} from "./append.ts";
export { Committer } from "./committer.ts";
export { EventStream, snapshotItem, type StreamFrom } from "./event-stream.ts";
export { LiveLogs } from "./live-log.ts";
export {
  generationAt,
  readNextMessage,
  readTimeline,
  waitForAnswer,
  waitForGeneration,
  type Position,
} from "./reader.ts";
export {
  agentMessage,
  artifactRecord,
  callJson,
  endsSilently,
  isMirror,
  messageRecord,
  mirrorOf,
  statusRecord,
  storedPrincipal,
  taskRecord,
  type Origin,
  type StatusInit,
  type StoredCall,
} from "./records.ts";
export { LogWriter, type WriterInit, type WriterStart } from "./writer.ts";
