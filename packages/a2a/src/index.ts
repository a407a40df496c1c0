/**
 * What an agent's author and a server's operator call by hand, and the types that its signatures need.
 *
 * The data model stands in `@parley/a2a/model`, the client in `@parley/a2a/client`, who calls in `@parley/a2a/auth`, and the
 * ports in `@parley/a2a/protocol`, `store`, `transport` and `net`.
 * @packageDocumentation
 */

// Writing agents.
export { defineAgent, type AgentDefinition } from "./agent/index.ts";
export {
  AuthorizationNotGiven,
  DelegationFailed,
  MessageRefused,
  TurnAborted,
  type Agent,
  type AgentBehaviour,
  type AuthorizationInit,
  type Credentials,
  type DelegateClient,
  type DelegateMessage,
  type DelegateOptions,
  type Delegated,
  type OAuthTokens,
  type AgentDescription,
  type AgentEvent,
  type AgentMessage,
  type AgentOutput,
  type AgentTypes,
  type AgentYield,
  type ArtifactEvent,
  type ArtifactInit,
  type ArtifactWriter,
  type HistoryEntry,
  type HistoryOptions,
  type OwnCapabilities,
  type Turn,
  type TurnAbortKind,
  type TurnContext,
  type TurnSignal,
  type WriterOptions,
} from "./protocol/index.ts";
export { data, file, text, type Content, type FileSource, type PartOptions } from "./model/index.ts";

// Serving them.
export type { FetchFacts, FetchHandler } from "./server/fetch.ts";
export {
  checkHandlerOptions,
  createHandler,
  jsonRpcBinding,
  restBinding,
  type AgentMount,
  type CorsOptions,
  type Handler,
  type HandlerLimits,
  type HandlerOptions,
  type InterfacePaths,
  type ProtocolVersion,
  type ServedAgent,
  type ServerBinding,
} from "./handler.ts";
export type { Rate, RateAnswer, RateLimiter, RateLimits } from "./limits/index.ts";
export type { InTaskOptions } from "./intask/index.ts";
export type { DedupeOptions, EngineLimits, LeaseOptions, RetentionOptions } from "./engine/index.ts";
export { memoryStore, type Store } from "./store/index.ts";
export {
  anonymous,
  auditLog,
  type AgentService,
  type Audit,
  type AuditRecord,
  type AnyExtension,
  type CallContext,
  type Ended,
  type Interceptor,
  type Observer,
  type Payload,
  type Principal,
  type Reply,
  type StreamItem,
  type StreamReply,
} from "./protocol/index.ts";

// What both are given.
export { A2AError, hasCode, type A2AErrorCode } from "./model/index.ts";
export {
  randomIds,
  silentLogger,
  systemClock,
  type Clock,
  type Ids,
  type LogFields,
  type Logger,
} from "./base/index.ts";

// The parts of the data model that the signatures above name.
export type {
  AgentCapabilities,
  AgentCard,
  AgentProvider,
  AgentSkill,
  Artifact,
  DataPart,
  JsonLike,
  JsonObject,
  JsonObjectLike,
  JsonValue,
  Message,
  Part,
  RawPart,
  SecurityRequirement,
  SecurityScheme,
  StandardSchema,
  StreamResponse,
  Task,
  TaskState,
  TextPart,
  UrlPart,
} from "./model/index.ts";
