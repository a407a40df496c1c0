/**
 * What a call is, apart from any wire: the operations, the port of a service, HTTP without a runtime, and what an agent is.
 * @packageDocumentation
 */

// The operations (A2A 1.0 §3.1, §5.3).
export {
  type UnaryOperations,
  type StreamOperations,
  type Operations,
  type UnaryName,
  type StreamName,
  type OperationName,
  type OperationInfo,
  type OperationTable,
  operations,
  isMethod,
  type MethodName,
  type MethodRequest,
  type MethodRoute,
} from "./protocol/index.ts";

// The port of a service, and what goes with a call.
export {
  type Principal,
  type CallContext,
  type Outgoing,
  type HeaderReader,
  type Reply,
  type StreamItem,
  type StreamReply,
  type AgentService,
  type Interceptor,
  intercept,
  Payload,
  TextPayload,
  mapItems,
  observeRequests,
} from "./protocol/index.ts";

// HTTP without a runtime.
export type {
  HostPrincipal,
  PeerCertificate,
  RequestFacts,
  UniversalRequest,
  ByteReader,
  ByteFlow,
  Sink,
  BodyWriter,
  UniversalResponse,
  UniversalHandler,
} from "./protocol/index.ts";

// Host names of this machine, and paths for the log.
export { isLoopback, withoutQuery } from "./base/index.ts";

// Request bodies, and bounds for them.
export {
  type FileReceiver,
  type FileSender,
  type IncomingFile,
  type IncomingFiles,
  type IncomingFilesByUrl,
} from "./protocol/index.ts";
export {
  BodyBytes,
  bodyTooLarge,
  smallBody,
  type BodyBudget,
  type BodyPlace,
  type BodyReader,
} from "./protocol/index.ts";
export { ByteBudget } from "./protocol/index.ts";
export { GrowingBytes } from "./protocol/index.ts";

// When a stream ends.
export { stateOf, closesAfter } from "./protocol/index.ts";

// What an engine runs.
export type { Executor, TurnBase } from "./protocol/index.ts";

// Files of a turn.
export type {
  ByteSource,
  ByteStream,
  FileContent,
  FileFetch,
  FileInit,
  FilesOptions,
  SentFile,
} from "./protocol/index.ts";

// Extension URIs of this project.
export { resumeExtension, idempotentSendExtension } from "./protocol/index.ts";

// What an observer is told.
export type {
  DeliveryResult,
  ObservedAppend,
  ObservedCall,
  ObservedCard,
  ObservedCommit,
  ObservedDelivery,
  ObservedRequest,
  ObservedRetry,
  ObservedTurn,
  Observer,
} from "./protocol/index.ts";
