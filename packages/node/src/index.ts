/**
 * The package for Node: `serve()`, a client with gRPC, a logger, a dialer that connects only to checked addresses, and the parts of
 * `@parley/a2a` and `@parley/server` that most programs need.
 * @packageDocumentation
 */

// Writing agents.
export { defineAgent } from "@parley/server/internal/agent/index";
export type {
  Agent,
  AgentDescription,
  AgentEvent,
  AgentYield,
  DelegateClient,
  HistoryEntry,
  Interceptor,
  Turn,
} from "@parley/a2a/internal/protocol/index";
export { A2AError, data, file, hasCode, text } from "@parley/a2a/internal/model/index";
export type { AgentCard, Artifact, JsonObject, JsonValue, Message, Part, Task } from "@parley/a2a/internal/model/index";
export type { Client } from "@parley/a2a/internal/client/index";

// Serving them.
export { createHandler, jsonRpcBinding, restBinding } from "@parley/server/internal/handler";
export { memoryStore, type Store } from "@parley/server/internal/store/index";
export { auditLog } from "@parley/a2a/internal/protocol/index";
export { silentLogger, type Logger } from "@parley/a2a/internal/base/index";

// The Node host.

export type { BindingOnPort } from "./listen.ts";
export { serve } from "./serve.ts";
export type { CloseOptions, ConsoleServing, GrpcServing, ServeOptions, Server } from "./serve-options.ts";
export type { UpgradeBinding, UpgradedConnection, UpgradeEndpoint } from "./http/upgrade.ts";
export { standardLogger, type LogLevel, type LogStream, type StandardLoggerOptions } from "./logger.ts";
export {
  nodeListener,
  type HttpOptions,
  type NodeListener,
  type NodeListenerOptions,
  type NodeRequest,
} from "./http/listener.ts";
export { connect, type NodeConnectOptions } from "./client/connect.ts";
export { loopbackRedirect, openBrowser, type LoopbackRedirectOptions } from "./client/loopback-redirect.ts";
export type { ClientTls } from "./client/connect.ts";
export type { TrustProxy, TrustProxyOptions } from "./http/proxies.ts";
export type { TlsFiles } from "./http/tls.ts";
export { nodeDialer, type DialerOptions } from "./client/dialer.ts";

// Large files in a folder.
export { fileBlobs } from "./blobs.ts";
