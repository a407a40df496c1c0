export { serve, type BindingOnPort, type CloseOptions, type ServeOptions, type Server } from "./serve.ts";
export type { UpgradeBinding, UpgradedConnection, UpgradeEndpoint } from "./upgrade.ts";
export { standardLogger, type LogLevel, type LogStream, type StandardLoggerOptions } from "./logger.ts";
export { nodeListener, type HttpOptions, type NodeListener } from "./http.ts";
export { connect, type NodeConnectOptions } from "./connect.ts";
export { loopbackRedirect, type LoopbackRedirectOptions } from "./loopback-redirect.ts";
export type { ClientTls } from "./certificate-fetch.ts";
export { nodeDialer, type DialerOptions } from "./dialer.ts";
