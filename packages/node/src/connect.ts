import type { AgentCard } from "@parley/a2a";
import type { Client, ConnectOptions, OlderCard } from "@parley/a2a/client";
import { grpcName, optional } from "./defaults.ts";

/**
 * `connect` of `@parley/a2a/client`, with gRPC among the bindings where `@parley/grpc` is installed: for
 * `connect(agent, { binding: "GRPC" })`, and for agents that speak only gRPC.
 *
 * @throws Error where gRPC is asked for and not installed, in addition to what `connect` throws.
 */
export async function connect(
  agent: string | URL | AgentCard | OlderCard,
  options: ConnectOptions = {},
): Promise<Client> {
  const { binding, bindings = [] } = options;
  // Loaded here, because a server that only serves does not need it.
  const client = await import("@parley/a2a/client");
  if (binding !== undefined && binding !== "GRPC") return client.connect(agent, options);
  const grpc = await optional(grpcName, () => import("@parley/grpc/client"));
  if (grpc !== undefined) return client.connect(agent, { ...options, bindings: [...bindings, grpc.grpcBinding()] });
  if (binding === "GRPC" && bindings.length === 0) throw new Error(`To call by gRPC, install ${grpcName}`);
  return client.connect(agent, options);
}
