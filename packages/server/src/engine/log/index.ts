export { Additions } from "./additions.ts";
export {
  acquireLease,
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
export { generationAt, readNextMessage, waitForAnswer, waitForGeneration, type Position } from "./reader.ts";
export {
  agentMessage,
  artifactRecord,
  messageRecord,
  statusRecord,
  storedPrincipal,
  taskRecord,
  type Origin,
  type StatusInit,
  type StoredCall,
} from "./records.ts";
export { LogWriter } from "./writer.ts";
export type { WriterInit, WriterStart } from "./writer-init.ts";
