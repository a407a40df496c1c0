import { connect, type Client } from "@parley/a2a/client";
import { UsageError } from "./errors.ts";
import type { Io } from "./io.ts";
import { logTo } from "./log.ts";

/** Options of every command that calls an agent. */
export interface CallOptions {
  readonly token?: string;
  readonly header?: readonly string[];
  readonly credentialOrigin?: readonly string[];
  readonly binding?: "JSONRPC" | "HTTP+JSON" | "GRPC";
  readonly json?: boolean;
  readonly verbose?: boolean;
}

/** Reads the agent's card and returns a client for it. */
export async function open(io: Io, url: string, options: CallOptions): Promise<Client> {
  // Loaded only on request: the tables of protobuf cost start-up time.
  const bindings = options.binding === "GRPC" ? [(await import("@parley/grpc/client")).grpcBinding()] : [];
  const logger = options.verbose === true ? await logTo(io, "debug", "text") : undefined;
  return connect(url, {
    bindings,
    headers: callHeaders(options, io.env),
    credentialOrigins: options.credentialOrigin ?? [],
    ...(options.binding === undefined ? {} : { binding: options.binding }),
    ...(logger === undefined ? {} : { logger }),
  });
}

/** The headers of `--header`, and the token as `Authorization`. Throws UsageError where one is no valid header. */
export function callHeaders(
  options: Pick<CallOptions, "header" | "token">,
  env: Io["env"],
): Readonly<Record<string, string>> {
  const headers: Record<string, string> = {};
  for (const text of options.header ?? []) {
    const [, name, value] = /^([!#$%&'*+.^`|~\w-]+):\s*((?:[!-~\xa1-\xff][\t -~\xa0-\xff]*)?)$/.exec(text) ?? [];
    if (name === undefined || value === undefined) {
      throw new UsageError(`--header "${text}" is not "Name: value", in characters that a header may have (Latin-1)`);
    }
    headers[name.toLowerCase()] = value;
  }
  const token = options.token ?? env["PARLEY_TOKEN"];
  if (token !== undefined && token !== "" && headers["authorization"] === undefined) {
    if (!/^[\x21-\x7e]+$/.test(token)) throw new UsageError("the token holds characters that no header can carry");
    headers["authorization"] = `Bearer ${token}`;
  }
  return headers;
}
