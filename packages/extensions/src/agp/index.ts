/**
 * The Agent Gateway Protocol: squads announce their capabilities, and a gateway routes intents to them.
 * @packageDocumentation
 */

export { gatewayAgent, type GatewayAgentOptions } from "./agent.ts";
export {
  agpErrors,
  delegationMediaType,
  delegationPart,
  intentMediaType,
  intentPart,
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
export { agp, type AgpExtension, type AgpTurn } from "./extension.ts";
export { agentGateway, gatewayPeer, type AgpCalls } from "./gateway.ts";
export type { AgentGateway, AgentGatewayOptions, DelegationReport, GatewayPeer, GatewayPolicy } from "./port.ts";
