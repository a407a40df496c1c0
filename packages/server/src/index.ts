/**
 * The functions that agent authors and server operators call, and the types in their signatures.
 *
 * Stores, and the functions to operate them, are in `@parley/server/store`. Authentication is in `@parley/a2a/auth`. The types for bindings,
 * observers and interceptors are in `@parley/a2a/protocol`.
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
  type AgentDescription,
  type AgentEvent,
  type AgentOutput,
  type AgentYield,
  type ArtifactInit,
  type ArtifactWriter,
  type DelegateClient,
  type HistoryEntry,
  type Turn,
  type TurnContext,
} from "@parley/a2a/internal/protocol/index";
export { data, file, text } from "@parley/a2a/internal/model/index";

// Serving them.
export {
  createHandler,
  createHost,
  jsonRpcBinding,
  restBinding,
  type AgentMount,
  type Handler,
  type HandlerLimits,
  type HandlerOptions,
  type Host,
  type HostedService,
  type HostOptions,
  type Mounts,
  type RouteMount,
  type ServedAgent,
} from "./handler.ts";
export type { FetchFacts } from "@parley/a2a/internal/transport/server/fetch";
export { fetchMount, type FetchMountOptions } from "./server/fetch.ts";
export type { Rate, RateAnswer, RateLimiter, RateLimits } from "./limits/port.ts";
export type { LeaseOptions } from "./engine/index.ts";
export { memoryStore, type Store } from "./store/index.ts";
export {
  anonymous,
  auditLog,
  type Interceptor,
  type Observer,
  type Principal,
} from "@parley/a2a/internal/protocol/index";

// Used by both.
export { A2AError, hasCode } from "@parley/a2a/internal/model/index";
export { randomIds, silentLogger, systemClock } from "@parley/a2a/internal/base/index";

// The parts of the data model that nearly every agent uses. The others are in `@parley/a2a/model`.
export type { AgentCard, Artifact, Message, Part, Task } from "@parley/a2a/internal/model/index";
