import { skillInMetadata } from "@parley/a2a/internal/auth/guarded";
import type { AuthenticationPlace, Authenticator, SkillOf } from "@parley/a2a/internal/auth/port";
import { withoutQuery, withoutSlashes } from "@parley/a2a/internal/base/index";
import { isObject } from "@parley/a2a/internal/model/schema";
import {
  anonymous,
  principalOfCall,
  type AgentService,
  type Principal,
  type UniversalRequest,
} from "@parley/a2a/internal/protocol/index";
import type { PublicDocument } from "@parley/a2a/internal/transport/discovery/handler";
import { cannotServe, pathBelow } from "@parley/a2a/internal/transport/server/binding";
import type { MountedAgent } from "./mounted.ts";
import type { HostOptions } from "./options.ts";

/* The option `authenticator` of a handler: the caller, the requirements of each agent, and the agents' metadata as resources. */

export interface HostPlace {
  /** The public URL, without a slash at its end. */
  readonly publicUrl: string;
  /** The prefix of each path that the host answers. */
  readonly basePath: string;
}

/** Authenticates the callers of a host, and checks what cards require. */
export interface Authentication {
  /** Authenticates the caller of a request. */
  authenticate(request: UniversalRequest): Principal | Promise<Principal>;
  /** The service of an agent behind the checks of its card. */
  guard(service: AgentService, agent: GuardedAgent): AgentService;
  /**
   * Checks the requirements of another set of agents. `commit` starts serving them; `documents` has the metadata of the resources (RFC 9728).
   *
   * @throws A2AError `InvalidParams` if a card requires a scheme that the authenticator does not check, or violates A2A 1.0.
   */
  prepare(agents: readonly MountedAgent[]): { readonly documents: readonly PublicDocument[]; commit(): void };
}

/** The requirements for callers of an agent. */
export interface GuardedAgent extends Pick<MountedAgent, "url"> {
  readonly card: Pick<MountedAgent["card"], "securityRequirements" | "skills">;
  readonly description: Pick<MountedAgent["description"], "securityRequirements">;
}

/** The dependencies of the authentication. */
export function authenticationOf(
  authenticator: Authenticator | undefined,
  host: HostPlace,
  skillOf: SkillOf = skillInMetadata,
  cardReaders: HostOptions["cardReaders"] = "anyone",
): Authentication {
  if (authenticator === undefined) {
    return {
      authenticate: () => anonymous,
      guard: (service) => service,
      prepare(agents) {
        for (const agent of agents) checkRequirements(agent, undefined);
        return { documents: [], commit: () => {} };
      },
    };
  }
  // Not loaded if there is no authenticator.
  let checks: Checks | undefined;
  const load = async (): Promise<Checks> => (checks ??= await import("@parley/a2a/internal/auth/guarded"));
  let placeOf = placesOf(authenticator, host, []);
  return {
    async authenticate(request) {
      const principal = await authenticator.authenticate(request, placeOf(request.url));
      return principalOfCall((checks ?? (await load())).vouched(authenticator, principal), request);
    },
    guard(service, { card, description, url }) {
      const byAuthenticator = description.securityRequirements === undefined;
      const place = { ...resourceAt(url, authenticator, host), url };
      const guard = { card, byAuthenticator, authenticator, place, skillOf };
      return {
        async call(operation, request, context) {
          (checks ?? (await load())).checkCaller(guard, operation, request, context);
          return service.call(operation, request, context);
        },
        async stream(operation, request, context) {
          (checks ?? (await load())).checkCaller(guard, operation, request, context);
          return service.stream(operation, request, context);
        },
      };
    },
    prepare(agents) {
      for (const agent of agents) checkRequirements(agent, authenticator);
      const next = placesOf(authenticator, host, agents);
      return {
        documents: documentsOf(authenticator, host, agents, cardReaders === "anyone"),
        commit: () => void (placeOf = next),
      };
    },
  };
}

type Checks = typeof import("@parley/a2a/internal/auth/guarded");

type Resource = Pick<AuthenticationPlace, "resources" | "metadataUrl">;

/** An agent as a protected resource, for tokens for the agent or for the server. */
function resourceAt(url: string, { resource }: Authenticator, host: HostPlace): Resource {
  return {
    resources: [...new Set([url, host.publicUrl])],
    ...(resource !== undefined && { metadataUrl: metadataUrlAt(url, host) }),
  };
}

/** The place of a request by its path. Requests without a path of an agent, such as those of gRPC, may be for any agent. */
function placesOf(
  authenticator: Authenticator,
  host: HostPlace,
  agents: readonly MountedAgent[],
): (path: string) => AuthenticationPlace {
  const { publicUrl, basePath } = host;
  const { origin } = new URL(publicUrl);
  const below = new Map(
    agents
      .filter(({ url }) => url !== publicUrl)
      .map(({ url }) => [basePath + url.slice(publicUrl.length), resourceAt(url, authenticator, host)]),
  );
  const demanded = demandedBy(agents);
  const any: Resource = {
    ...resourceAt(publicUrl, authenticator, host),
    resources: [...new Set([publicUrl, ...agents.map(({ url }) => url)])],
  };
  const resourceOf = (path: string): Resource => {
    for (let end = path.length; end > 0; end = path.lastIndexOf("/", end - 1)) {
      const found = below.get(path.slice(0, end));
      if (found !== undefined) return found;
    }
    return any;
  };
  return (url) => {
    const path = withoutQuery(url);
    const { resources, metadataUrl } = resourceOf(path);
    return {
      resources,
      ...(metadataUrl !== undefined && { metadataUrl }),
      ...(demanded.length > 0 && { demanded }),
      url: pathBelow(path, basePath) === undefined ? origin + url : publicUrl + url.slice(basePath.length),
    };
  };
}

/** The schemes that skills demand, and those of cards whose requirements differ from the authenticator's. */
function demandedBy(agents: readonly MountedAgent[]): readonly string[] {
  const requirements = agents.flatMap(({ card, description }) => [
    ...(description.securityRequirements === undefined ? [] : (card.securityRequirements ?? [])),
    ...card.skills.flatMap(({ securityRequirements = [] }) => securityRequirements),
  ]);
  return [...new Set(requirements.flatMap(({ schemes = {} }) => Object.keys(schemes)))];
}

const metadataPath = "/.well-known/oauth-protected-resource";

/** The URL of a resource's metadata: the well-known path is inserted between its host and its path (RFC 9728 §3.1). */
function metadataUrlOf(resource: string): string {
  const { origin, pathname } = new URL(resource);
  return origin + metadataPath + withoutSlashes(pathname);
}

/**
 * The public URL of a resource's metadata. If a proxy changes the paths of this server, only paths below `publicUrl` reach it.
 */
function metadataUrlAt(resource: string, { publicUrl, basePath }: HostPlace): string {
  const { origin, pathname } = new URL(publicUrl);
  const metadata = metadataUrlOf(resource);
  if (withoutSlashes(pathname) === basePath) return metadata;
  return publicUrl + metadataUrlOf(origin + resource.slice(publicUrl.length)).slice(origin.length);
}

/** The metadata of each agent, and of the server. They contain data of the cards only if the cards are public. */
function documentsOf(
  { resource }: Authenticator,
  host: HostPlace,
  agents: readonly MountedAgent[],
  arePublic: boolean,
): readonly PublicDocument[] {
  if (resource === undefined) return [];
  const { publicUrl, basePath } = host;
  const moved = withoutSlashes(new URL(publicUrl).pathname) !== basePath;
  const cards = new Map(agents.toReversed().map(({ url, card }) => [url, card]));
  return [...new Set([publicUrl, ...cards.keys()])].map((url) => {
    const card = arePublic ? cards.get(url) : undefined;
    const told = { resource: url, name: card?.name, documentation: card?.documentationUrl };
    const metadata = new URL(metadataUrlAt(url, host));
    return {
      path: moved ? basePath + metadata.href.slice(publicUrl.length) : metadata.pathname,
      name: "The metadata of a resource",
      mediaType: "application/json",
      async load() {
        const { resourceMetadata } = await import("@parley/a2a/internal/auth/challenge");
        return resourceMetadata(resource, told);
      },
    };
  });
}

/* The security requirements of a card, from a program or a JSON file. */

/**
 * Rejects a card whose requirements violate A2A 1.0 or name a scheme that is never checked, because its owner would rely on the check.
 * The types prevent most of this, but not in JavaScript and JSON files.
 *
 * @throws A2AError `InvalidParams`.
 */
function checkRequirements({ card, description }: MountedAgent, authenticator: Authenticator | undefined): void {
  const checked = authenticator?.securitySchemes ?? {};
  const all = [
    { where: "", written: description, of: card },
    ...card.skills.map((skill) => ({ where: `skills[${skill.id}].`, written: skill, of: skill })),
  ];
  for (const { where, written, of } of all) {
    if ("security" in written) {
      throw cannotServe(
        `${where}security`,
        `is the field of A2A 0.3. In 1.0 it is securityRequirements: ${requirementExample}`,
      );
    }
    const field = `${where}securityRequirements`;
    const unknown = schemeNames(field, written.securityRequirements ?? of.securityRequirements).find(
      (name) => !Object.hasOwn(checked, name),
    );
    if (unknown === undefined) continue;
    throw cannotServe(
      field,
      `has the scheme ${JSON.stringify(unknown)}, which the authenticator of this server does not check`,
    );
  }
}

const requirementExample = '[{ schemes: { jwt: { list: ["pay"] } } }]';

/** The schemes of requirements. A requirement without schemes accepts everyone, so it must be exactly `{}` or `{ schemes: {} }`. */
function schemeNames(field: string, requirements: unknown): readonly string[] {
  if (requirements === undefined) return [];
  if (!Array.isArray(requirements)) throw cannotServe(field, `must be a list, such as ${requirementExample}`);
  return requirements.flatMap((requirement: unknown, at) => {
    const { schemes = {}, ...others } = isObject(requirement) ? requirement : { requirement };
    if (Object.keys(others).length > 0 || !isObject(schemes)) {
      throw cannotServe(`${field}[${at}]`, `must have the member schemes and no other, as in ${requirementExample}`);
    }
    for (const [name, demanded] of Object.entries(schemes)) {
      const { list = [], ...more } = isObject(demanded) ? demanded : { demanded };
      if (isScopes(list) && Object.keys(more).length === 0) continue;
      throw cannotServe(`${field}[${at}].schemes.${name}`, `must have a list of scopes, as in ${requirementExample}`);
    }
    return Object.keys(schemes);
  });
}

function isScopes(list: unknown): boolean {
  return Array.isArray(list) && list.every((scope) => typeof scope === "string");
}
