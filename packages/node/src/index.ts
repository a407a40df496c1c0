/**
 * The Node host: `serve()`, a client with gRPC, a logger, and a dialer that connects to the address that was checked.
 * @packageDocumentation
 */

export type { BindingOnPort } from "./listen.ts";
export { serve } from "./serve.ts";
export type { CloseOptions, GrpcServing, ServeOptions, Server } from "./serve-options.ts";
export type { UpgradeBinding, UpgradedConnection, UpgradeEndpoint } from "./upgrade.ts";
export { standardLogger, type LogLevel, type LogStream, type StandardLoggerOptions } from "./logger.ts";
export {
  nodeListener,
  type HttpOptions,
  type NodeListener,
  type NodeListenerOptions,
  type NodeRequest,
} from "./http.ts";
export { connect, type NodeConnectOptions } from "./connect.ts";
export { loopbackRedirect, openBrowser, type LoopbackRedirectOptions } from "./loopback-redirect.ts";
export type { ClientTls } from "./certificate-fetch.ts";
export type { TrustProxy, TrustProxyOptions } from "./proxies.ts";
export type { TlsFiles } from "./tls.ts";
export { nodeDialer, type DialerOptions } from "./dialer.ts";
