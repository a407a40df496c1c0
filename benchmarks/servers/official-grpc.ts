import { Server } from "@grpc/grpc-js";
import type { A2ARequestHandler } from "@a2a-js/sdk/server";
import { A2AService, grpcService, UserBuilder } from "@a2a-js/sdk/server/grpc";
import { listening } from "./grpc-address.ts";

/** The official SDK as in its README for gRPC, on grpc-js. Resolves with its address. */
export function officialGrpc(requestHandler: A2ARequestHandler): Promise<string> {
  const server = new Server();
  server.addService(A2AService, grpcService({ requestHandler, userBuilder: UserBuilder.noAuthentication }));
  return listening(server);
}
