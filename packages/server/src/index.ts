/**
 * What an agent's author and a server's operator call by hand, and the types that its signatures need.
 *
 * Stores, and operators' functions on them, are in `@parley/server/store`. Who calls is in `@parley/a2a/auth`, and what bindings, observers
 * and interceptors are made of in `@parley/a2a/protocol`.
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

// What both are given.
export { A2AError, hasCode } from "@parley/a2a/internal/model/index";
export { randomIds, silentLogger, systemClock } from "@parley/a2a/internal/base/index";

// The parts of the data model that nearly every agent names. The others are in `@parley/a2a/model`.
export type { AgentCard, Artifact, Message, Part, Task } from "@parley/a2a/internal/model/index";
