import { A2AError } from "../../model/index.ts";
import { Payload } from "../../protocol/index.ts";
import type { HostedAgent } from "../options.ts";
import type { UnaryHandlers } from "./operations.ts";

/** GetExtendedAgentCard (A2A 1.0 §3.1.11). */
export function getExtendedAgentCard({ extendedCard }: HostedAgent): UnaryHandlers["GetExtendedAgentCard"] {
  return async (_request, { principal }) => {
    if (extendedCard === undefined) throw new A2AError("ExtendedAgentCardNotConfigured");
    return { payload: new Payload(extendedCard(principal)) };
  };
}
