import type { AgentCard } from "@parley/a2a";
import { connect as connectAnywhere, type Client, type ConnectOptions, type OlderCard } from "@parley/a2a/client";
import { grpcName } from "./bindings.ts";
import { optional } from "./optional.ts";

/**
 * `connect` of `@parley/a2a/client`, with gRPC among the bindings where `@parley/grpc` is installed: for
 * `connect(agent, { binding: "GRPC" })`, and for agents that speak nothing else.
 *
 * @throws Error when gRPC is asked for and not installed, beside what `connect` throws.
 */
export async function connect(
  agent: string | URL | AgentCard | OlderCard,
  options: ConnectOptions = {},
): Promise<Client> {
  const { binding, bindings = [] } = options;
  if (binding !== undefined && binding !== "GRPC") return connectAnywhere(agent, options);
  const grpc = await optional(grpcName, () => import("@parley/grpc/client"));
  if (grpc !== undefined) return connectAnywhere(agent, { ...options, bindings: [...bindings, grpc.grpcBinding()] });
  if (binding === "GRPC" && bindings.length === 0) throw new Error(`To call by gRPC, install ${grpcName}`);
  return connectAnywhere(agent, options);
}
