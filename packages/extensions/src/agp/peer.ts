import type { StandardSchema } from "@parley/a2a/internal/model/index";
import type { AgpTypes } from "./extension.ts";
import type { GatewayPeer } from "./port.ts";

type Methods = AgpTypes["methods"];
type RequestOf<Method> = Method extends { readonly request: StandardSchema<infer Request> } ? Request : never;
type ResponseOf<Method> = Method extends { readonly response: StandardSchema<infer Response> } ? Response : never;

/** What `gatewayPeer()` needs of a client: `client.ext(agp())` has it. */
export interface AgpCalls {
  /** Calls a method of the other gateway. */
  call<Name extends keyof Methods>(method: Name, request: RequestOf<Methods[Name]>): Promise<ResponseOf<Methods[Name]>>;
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
