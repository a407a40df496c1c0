export { serve, type CloseOptions, type ServeOptions, type Server } from "./serve.ts";
export type { GrpcServeOptions } from "./grpc.ts";
export { nodeListener, type HttpOptions, type NodeListener } from "./http.ts";
export { connect } from "./connect.ts";
export { nodeDialer, type DialerOptions } from "./dialer.ts";
