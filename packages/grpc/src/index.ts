/** gRPC and gRPC-Web for Parley. */

export { grpcHandler, type GrpcHandler, type GrpcOptions } from "./server/handler.ts";
