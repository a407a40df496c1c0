import type {
  AgentCard,
  AgentExtension,
  AgentInterface,
  SecurityRequirement,
  SecurityScheme,
} from "../../model/index.ts";
import type { AgentDescription } from "../../protocol/index.ts";
import type { Codec } from "../../wire/codec.ts";

/** Paths below the base of an agent, with a leading slash; `""`: the base itself, which is the default. */
export interface InterfacePaths {
  /** Where JSON-RPC is posted to. */
  readonly jsonrpc?: string;
  /** What the paths of REST follow. */
  readonly rest?: string;
}

/** What a host knows of an agent beyond the agent's own words (A2A 1.0 §4.4.1). */
export interface CardHost {
  /** The base URL that clients reach, without a slash at its end. Never from a header of a request. */
  readonly url: string;
  /** Where each binding is found below it. Default: there. */
  readonly interfaces?: InterfacePaths;
  readonly tenant?: string;
  /** Protocol versions, the preferred one first. */
  readonly versions: readonly CardVersion[];
  /** Where gRPC is spoken, as `host:port`, and under what label. */
  readonly grpc?: { readonly url: string; readonly tenant?: string };
  /** What callers must show here; an agent that declares requirements of its own is believed. */
  readonly securitySchemes?: Readonly<Record<string, SecurityScheme>>;
  readonly securityRequirements?: readonly SecurityRequirement[];
  /** Whether there is another card for authenticated callers (§3.1.11). */
  readonly extendedCard?: boolean;
  /** What this host does beyond the protocol. */
  readonly extensions?: readonly AgentExtension[];
}

/** What a card has to know of a version. */
export type CardVersion = Pick<Codec, "version" | "tenantInPath">;

const textOnly = ["text/plain"];

/** The card of an agent as this host serves it: every binding of each version, JSON-RPC first (§8.3.1). */
export function buildCard(agent: AgentDescription, host: CardHost): AgentCard {
  const capabilities = {
    streaming: true,
    ...agent.capabilities,
    ...(host.extendedCard === true && { extendedAgentCard: true }),
  };
  const extensions = [...(capabilities.extensions ?? []), ...(host.extensions ?? [])];
  const securitySchemes = { ...host.securitySchemes, ...agent.securitySchemes };
  const securityRequirements = agent.securityRequirements ?? host.securityRequirements ?? [];
  return {
    name: agent.name,
    description: agent.description,
    supportedInterfaces: host.versions.flatMap((version) => interfacesOf(host, version)),
    ...(agent.provider !== undefined && { provider: agent.provider }),
    version: agent.version,
    ...(agent.documentationUrl !== undefined && { documentationUrl: agent.documentationUrl }),
    capabilities: { ...capabilities, ...(extensions.length > 0 && { extensions }) },
    ...(Object.keys(securitySchemes).length > 0 && { securitySchemes }),
    ...(securityRequirements.length > 0 && { securityRequirements }),
    defaultInputModes: agent.defaultInputModes ?? textOnly,
    defaultOutputModes: agent.defaultOutputModes ?? textOnly,
    skills: agent.skills,
    ...(agent.iconUrl !== undefined && { iconUrl: agent.iconUrl }),
  };
}

function interfacesOf(
  { url, interfaces = {}, tenant, grpc }: CardHost,
  { version: protocolVersion, tenantInPath = false }: CardVersion,
): readonly AgentInterface[] {
  const { jsonrpc = "", rest = "" } = interfaces;
  const suffix = tenantInPath && tenant !== undefined ? `/${encodeURIComponent(tenant)}` : "";
  const bindings = [
    ["JSONRPC", jsonrpc],
    ["HTTP+JSON", rest],
  ] as const;
  const http = bindings.map(([protocolBinding, path]): AgentInterface => ({
    url: url + path + suffix,
    protocolBinding,
    ...(tenant !== undefined && !tenantInPath && { tenant }),
    protocolVersion,
  }));
  // gRPC has no paths that a label could stand in.
  if (grpc === undefined || (tenantInPath && grpc.tenant !== undefined)) return http;
  return [...http, { ...grpc, protocolBinding: "GRPC", protocolVersion }];
}
