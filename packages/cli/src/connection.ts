import { connect, type Client } from "@parley/a2a/client";
import type { Io } from "./io.ts";
import { callHeaders, type CallOptions } from "./options.ts";

/** Reads the agent's card and returns a client for it. */
export async function open(io: Io, url: string, options: CallOptions): Promise<Client> {
  // Loaded only on request: the tables of protobuf cost start-up time.
  const bindings = options.binding === "GRPC" ? [(await import("@parley/grpc/client")).grpcBinding()] : [];
  // Loaded only on request: the module of the logger loads the server as well.
  const logger = options.verbose === true ? (await import("./log.ts")).logTo(io, "debug", "text") : undefined;
  return connect(url, {
    bindings,
    headers: callHeaders(options, io.env),
    credentialOrigins: options.credentialOrigin ?? [],
    ...(options.binding === undefined ? {} : { binding: options.binding }),
    ...(logger === undefined ? {} : { logger }),
  });
}
