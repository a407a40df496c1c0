/** Serving agents: the model, the authoring of agents, stores, authentication, and the handler that puts them together. */

export * from "./model/index.ts";
export {
  silentLogger,
  systemClock,
  randomIds,
  utf8Length,
  type Clock,
  type Ids,
  type Bytes,
  type Logger,
  type LogFields,
} from "./base/index.ts";
export { defineAgent, type AgentDefinition } from "./agent/index.ts";
export { bearer, type Authenticator, type BearerOptions, type VerifyToken } from "./auth/index.ts";
export type { DedupeOptions, EngineLimits, LeaseOptions, RetentionOptions } from "./engine/index.ts";
export {
  createHandler,
  type AgentMount,
  type CorsOptions,
  type Handler,
  type HandlerLimits,
  type HandlerOptions,
  type InterfacePaths,
  type ProtocolVersion,
  type ServedAgent,
} from "./handler.ts";
export {
  anonymous,
  idempotentSendExtension,
  intercept,
  resumeExtension,
  TurnAborted,
  type Agent,
  type AgentBehaviour,
  type AgentDescription,
  type AgentEvent,
  type AgentMessage,
  type AgentOutput,
  type AgentService,
  type AgentYield,
  type ArtifactEvent,
  type ArtifactInit,
  type ArtifactWriter,
  type CallContext,
  type Executor,
  type HistoryEntry,
  type HistoryOptions,
  type Interceptor,
  type OwnCapabilities,
  type Principal,
  type Reply,
  type StreamItem,
  type StreamReply,
  type Turn,
  type TurnAbortKind,
  type TurnContext,
  type TurnSignal,
  type UniversalHandler,
  type UniversalRequest,
  type UniversalResponse,
  type WriterOptions,
} from "./protocol/index.ts";
export { memoryStore, type Store } from "./store/index.ts";
