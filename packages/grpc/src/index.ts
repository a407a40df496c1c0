/**
 * gRPC and gRPC-Web at a server. Clients have `@parley/grpc/client` and, in a browser, `@parley/grpc/web`.
 * @packageDocumentation
 */

export { grpcBinding, type GrpcOptions } from "./server/binding.ts";
