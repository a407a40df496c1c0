import { connect, type Client } from "@parley/a2a/client";
import type { Io } from "./io.ts";
import { callHeaders, type CallOptions } from "./options.ts";

/** Reads the agent's card and gives the client for it. */
export async function open(io: Io, url: string, options: CallOptions): Promise<Client> {
  // Its tables are read by who asks for it alone.
  const bindings = options.binding === "GRPC" ? [(await import("@parley/grpc/client")).grpcBinding()] : [];
  // What a server stands on as well comes with the logger: it is loaded where somebody looks.
  const logger = options.verbose === true ? (await import("./log.ts")).logTo(io, "debug", "text") : undefined;
  return connect(url, {
    bindings,
    headers: callHeaders(options, io.env),
    credentialOrigins: options.credentialOrigin ?? [],
    ...(options.binding === undefined ? {} : { binding: options.binding }),
    ...(logger === undefined ? {} : { logger }),
  });
}
