/**
 * For those who build on the protocol: the operations, the port of a service, HTTP without a runtime, what an agent is, the
 * versions of the protocol, what a binding is made of at a server and at a client, calls to addresses that a stranger chose, and
 * text that a stranger chose.
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

// How an agent is written, beside what `@parley/server` has.
export type {
  AgentMessage,
  AgentTypes,
  ArtifactEvent,
  AuthorizationInit,
  Credentials,
  Delegated,
  DelegateMessage,
  DelegateOptions,
  HistoryOptions,
  OAuthTokens,
  OwnCapabilities,
  TurnAbortKind,
  TurnSignal,
  WriterOptions,
} from "./protocol/index.ts";
export type { StandardSchema } from "./model/index.ts";

// What a log of callers has.
export type { Audit, AuditRecord, Ended } from "./protocol/index.ts";

// Loggers, clocks and ids.
export type { Clock, Ids, LogFields, Logger } from "./base/index.ts";

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
  Begun,
  DeliveryResult,
  Gauges,
  Observation,
  ObservedAppend,
  ObservedCall,
  ObservedCard,
  ObservedCommit,
  ObservedDelivery,
  ObservedRequest,
  ObservedRetry,
  ObservedTurn,
  Observer,
  ProcessGauges,
  StoreGauges,
} from "./protocol/index.ts";

// The versions of the protocol, and the port that they implement.
export {
  byVersion,
  codecV03,
  codecV1,
  codecV11,
  draftsOf,
  grpcWire,
  jsonRpcClientV1,
  methodShapes,
  versionOfSilence,
  wires,
  type Codec,
  type GrpcCodec,
  type GrpcWire,
  type JsonRpcCodec,
  type JsonRpcWire,
  type OwnShapes,
  type ProtocolVersion,
  type RestCodec,
  type RestRoute,
  type RestWire,
  type Shapes,
} from "./wires.ts";

// The port of a server's binding.
export {
  cannotServe,
  interfaceAt,
  isAnyPath,
  openAnyPath,
  pathBelow,
  speakers,
  tenantPath,
  type AgentAddress,
  type AnyPathBinding,
  type AnyPathEndpoint,
  type BaseAddress,
  type ClaimedPath,
  type HttpBinding,
  type HttpClaim,
  type HttpEndpoint,
  type InterfaceAddress,
  type RequestLimits,
  type ServerBinding,
  type ServerHost,
  type Target,
} from "./transport/server/binding.ts";

// One call, from its request to its answer.
export { answerCall, converted, serviceOf, type AnyReply, type ServerCall } from "./transport/server/answer-call.ts";
export { requestContext, type ServerContext } from "./transport/server/context.ts";
export { bodyText, codecOf, messageText, parseJson, requestedVersion } from "./transport/server/request.ts";
export {
  bodyOf,
  challengeHeaders,
  errorResponse,
  failureOf,
  withExtensions,
  type WireError,
} from "./transport/server/response.ts";
export { KeepAlive, streamHeaders, writeEvents, type EventFormat } from "./transport/server/event-stream.ts";

// A message whose large files are stored while it is read.
export { BodyPieces } from "./transport/server/body-pieces.ts";
export { fileLimits } from "./transport/server/file-limits.ts";

// What a server shares among its bindings.
export { corsPolicy, type CorsHeaders, type CorsOptions, type CorsPolicy } from "./transport/server/cors.ts";
export { Unfinished } from "./transport/server/unfinished.ts";
export { beforeRouter, type Found } from "./transport/router/router.ts";
export type { InterfacePaths } from "./transport/router/claims.ts";

// The port of a client's binding.

export type {
  AnswerHeaders,
  ClientBinding,
  ClientHost,
  ClientLimits,
  CredentialedRequest,
  HeadersRequest,
  HeadersSource,
  RequestCredentialing,
} from "./transport/client/binding.ts";
export { retryAfterOf } from "./base/retry-after.ts";
export { requestHeaders, sendRequest, type ClientResponse } from "./transport/client/request.ts";
export {
  clientService,
  readEvents,
  type ClientTransport,
  type EncodedCall,
  type EventSource,
} from "./transport/client/service.ts";
export { abortError } from "./transport/client/signals.ts";

// Clients of your own.
export type {
  ClientKit,
  ClientParts,
  ConversationClient,
  Downloadable,
  DownloadClient,
  ExtensionClientOf,
  ExtOfClient,
  FetchInit,
  FetchLike,
} from "./client/index.ts";

// Calls to addresses that a stranger chose: which are refused, and how a dialer reaches the one that was checked.
export {
  addressKind,
  addressProblem,
  guardedFetch,
  type AddressKind,
  type Dialer,
  type DialInit,
  type GuardedFetch,
  type NetPolicy,
  type ResolvedAddress,
} from "./net/index.ts";

// Text that a stranger chose, made safe to show on a terminal, in a log, on a page.
export { cut, escapeControls, html, jsonLine, line, plain } from "./base/display.ts";
