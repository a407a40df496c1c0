/** gRPC and gRPC-Web for Parley. */

export { grpcBinding, type GrpcBindingOptions } from "./client/index.ts";
export { grpcHandler, type GrpcHandler, type GrpcOptions } from "./server/handler.ts";
