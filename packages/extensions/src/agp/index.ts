/**
 * The Agent Gateway Protocol: squads announce what they can do, and a gateway routes intents to them.
 * @packageDocumentation
 */

export { gatewayAgent, type GatewayAgentOptions } from "./agent.ts";
export { agpErrors } from "./errors.ts";
export { agp, type AgpExtension, type AgpTurn } from "./extension.ts";
export { agentGateway } from "./gateway.ts";
export { delegationMediaType, delegationPart, intentMediaType, intentPart } from "./parts.ts";
export { gatewayPeer, type AgpCalls } from "./peer.ts";
export type { AgentGateway, AgentGatewayOptions, DelegationReport, GatewayPeer, GatewayPolicy } from "./port.ts";
export {
  agpSchemas,
  agpUri,
  type AgpParams,
  type AgpTable,
  type AnnounceRequest,
  type AnnounceResponse,
  type CapabilityAnnouncement,
  type DelegationIntent,
  type IntentPayload,
  type RouteEntry,
  type RoutesRequest,
  type WithdrawRequest,
  type WithdrawResponse,
} from "./shapes.ts";
