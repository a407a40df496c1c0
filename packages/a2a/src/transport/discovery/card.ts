import type {
  AgentCard,
  AgentExtension,
  AgentInterface,
  SecurityRequirement,
  SecurityScheme,
} from "../../model/index.ts";
import type { AgentDescription } from "../../protocol/index.ts";
import type { Codec } from "../../wire/codec.ts";
import type { AgentAddress, ServerBinding } from "../server/binding.ts";

/** What a host knows of an agent beyond the agent's own words (A2A 1.0 §4.4.1). */
export interface CardHost {
  /** Where the agent is found: see `interfacesOf`. */
  readonly interfaces: readonly AgentInterface[];
  /** What callers must show here; an agent that declares requirements of its own is believed. */
  readonly securitySchemes?: Readonly<Record<string, SecurityScheme>>;
  readonly securityRequirements?: readonly SecurityRequirement[];
  /** Whether there is another card for authenticated callers (§3.1.11). */
  readonly extendedCard?: boolean;
  /** What this host does beyond the protocol. */
  readonly extensions?: readonly AgentExtension[];
}

const textOnly = ["text/plain"];

/** The card of an agent as this host serves it. */
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
    supportedInterfaces: host.interfaces,
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

/**
 * The interfaces of an agent: every binding of each version, in the order of both, the preferred ones first (§8.3.1).
 *
 * @param paths - Of the bindings below the agent's base, by their names.
 */
export function interfacesOf(
  bindings: readonly ServerBinding[],
  codecs: readonly Codec[],
  agent: Omit<AgentAddress, "path">,
  paths: Readonly<Record<string, string>> = {},
): readonly AgentInterface[] {
  return codecs.flatMap((codec) =>
    bindings.flatMap((binding) =>
      binding.interfaces({ ...agent, path: paths[binding.name] ?? "" }, codec).map(({ url, tenant }) => ({
        url,
        protocolBinding: binding.name,
        ...(tenant !== undefined && { tenant }),
        protocolVersion: codec.version,
      })),
    ),
  );
}
