import type { GatewayPeer } from "./port.ts";
import type { AnnounceRequest, AnnounceResponse, WithdrawRequest, WithdrawResponse } from "./shapes.ts";

/** What `gatewayPeer()` needs of a client with `agp()`: `client.ext(agp())` gives it. */
export interface AgpCalls {
  /** Calls a method of the other gateway. */
  call(method: "agp/announce", request: AnnounceRequest): Promise<AnnounceResponse>;
  /** Calls a method of the other gateway. */
  call(method: "agp/withdraw", request: WithdrawRequest): Promise<WithdrawResponse>;
}

/**
 * Another gateway, for `peers` of `agentGateway()`.
 *
 * @param name - Its name.
 * @param calls - `client.ext(agp())` of a client that is connected to it.
 */
export function gatewayPeer(name: string, calls: AgpCalls): GatewayPeer {
  return {
    name,
    announce: (request) => calls.call("agp/announce", request),
    withdraw: (request) => calls.call("agp/withdraw", request),
  };
}
