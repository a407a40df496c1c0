import {
  guarded,
  isFor,
  metadataUrlOf,
  resourceMetadata,
  skillInMetadata,
  vouched,
  type AuthenticationPlace,
  type Authenticator,
  type SkillOf,
} from "../auth/index.ts";
import { withoutSlashes } from "../base/index.ts";
import type { AgentCard } from "../model/index.ts";
import { anonymous, type AgentService, type Principal, type UniversalRequest } from "../protocol/index.ts";
import type { PublicDocument } from "../transport/discovery/handler.ts";
import { cannotServe, pathBelow } from "../transport/server/binding.ts";
import type { MountedAgent } from "./serve-agent.ts";

/* The option `authenticator` of a handler: who calls, what each agent demands, and the metadata of the agents as resources. */

/** Where a handler is. */
export interface HandlerPlace {
  /** The public URL, without a slash at its end. */
  readonly publicUrl: string;
  /** What is before each path that the handler answers. */
  readonly basePath: string;
  readonly agents: readonly MountedAgent[];
}

/** How the callers of a handler are found, and what is demanded of them. */
export interface Authentication {
  /** Finds the caller of a request. */
  authenticate(request: UniversalRequest): Principal | Promise<Principal>;
  /** The service of an agent behind the checks of its card. */
  guard(service: AgentService, agent: MountedAgent): AgentService;
  /** The metadata of the resources (RFC 9728). */
  readonly documents: readonly PublicDocument[];
}

/**
 * How callers are found.
 *
 * @throws A2AError `InvalidParams` where a card demands a scheme that nobody checks.
 */
export function authenticationOf(
  authenticator: Authenticator | undefined,
  handler: HandlerPlace,
  skillOf: SkillOf = skillInMetadata,
): Authentication {
  for (const { card } of handler.agents) checkRequirements(card, authenticator);
  if (authenticator === undefined) {
    return { authenticate: () => anonymous, guard: (service) => service, documents: [] };
  }
  const placeOf = placesOf(authenticator, handler);
  return {
    authenticate(request) {
      const found = authenticator.authenticate(request, placeOf(request.url));
      return found instanceof Promise
        ? found.then((principal) => vouched(authenticator, principal))
        : vouched(authenticator, found);
    },
    guard(service, { card, mount, url }) {
      const byAuthenticator = mount.agent.securityRequirements === undefined;
      const place = { ...resourceAt(url, authenticator, handler), url };
      return guarded(service, { card, byAuthenticator, authenticator, place, skillOf });
    },
    documents: documentsOf(authenticator, handler),
  };
}

/** Refuses a card that demands what is never checked: callers would believe that it is. */
function checkRequirements(card: AgentCard, authenticator: Authenticator | undefined): void {
  const checked = authenticator?.securitySchemes ?? {};
  const demands = [
    { field: "securityRequirements", demanded: card.securityRequirements },
    ...card.skills.map((skill) => ({
      field: `skills[${skill.id}].securityRequirements`,
      demanded: skill.securityRequirements,
    })),
  ];
  for (const { field, demanded = [] } of demands) {
    const names = demanded.flatMap(({ schemes = {} }) => Object.keys(schemes));
    const unknown = names.find((name) => !Object.hasOwn(checked, name));
    if (unknown === undefined) continue;
    throw cannotServe(
      field,
      `has the scheme ${JSON.stringify(unknown)}, which the authenticator of this server does not check`,
    );
  }
}

type Resource = Pick<AuthenticationPlace, "resources" | "metadataUrl">;

/** An agent as a resource: a token for it, or for the server, opens it. */
function resourceAt(url: string, { resource }: Authenticator, handler: HandlerPlace): Resource {
  return {
    resources: [...new Set([url, handler.publicUrl])],
    ...(resource !== undefined && { metadataUrl: metadataUrlAt(url, handler) }),
  };
}

/** The place of a request by its path. Requests without a path of an agent, such as those of gRPC, may be for any agent. */
function placesOf(authenticator: Authenticator, handler: HandlerPlace): (path: string) => AuthenticationPlace {
  const { publicUrl, basePath, agents } = handler;
  const { origin } = new URL(publicUrl);
  const below = agents
    .map(({ url, mount }) => ({ path: withoutSlashes(mount.path ?? ""), url }))
    .filter(({ path }) => path !== "")
    .toSorted((one, other) => other.path.length - one.path.length)
    .map(({ path, url }) => ({ path: basePath + path, ...resourceAt(url, authenticator, handler) }));
  const any: Resource = {
    ...resourceAt(publicUrl, authenticator, handler),
    resources: [...new Set([publicUrl, ...agents.map(({ url }) => url)])],
  };
  return (url) => {
    const path = url.split("?", 1)[0] as string;
    const inside = pathBelow(path, basePath);
    const { resources, metadataUrl } = below.find((each) => pathBelow(path, each.path) !== undefined) ?? any;
    return {
      resources,
      ...(metadataUrl !== undefined && { metadataUrl }),
      url: inside === undefined ? origin + url : publicUrl + url.slice(basePath.length),
    };
  };
}

/**
 * Where the metadata of a resource is for its readers. Where a proxy changes the paths of this server, only what is below `publicUrl`
 * reaches it.
 */
function metadataUrlAt(resource: string, { publicUrl, basePath }: HandlerPlace): string {
  const { origin, pathname } = new URL(publicUrl);
  const metadata = metadataUrlOf(resource);
  if (withoutSlashes(pathname) === basePath) return metadata;
  return publicUrl + metadataUrlOf(origin + resource.slice(publicUrl.length)).slice(origin.length);
}

/** The metadata of each agent, and of the server. */
function documentsOf({ resource }: Authenticator, handler: HandlerPlace): readonly PublicDocument[] {
  if (resource === undefined) return [];
  const { publicUrl, basePath, agents } = handler;
  const urls = [...new Set([publicUrl, ...agents.map(({ url }) => url)])];
  return urls.map((url) => {
    const card = agents.find((agent) => isFor([agent.url], [url]))?.card;
    const told = { resource: url, name: card?.name, documentation: card?.documentationUrl };
    const metadata = new URL(metadataUrlAt(url, handler));
    const moved = withoutSlashes(new URL(publicUrl).pathname) !== basePath;
    return {
      path: moved ? basePath + metadata.href.slice(publicUrl.length) : metadata.pathname,
      name: "The metadata of a resource",
      mediaType: "application/json",
      load: () => Promise.resolve(resourceMetadata(resource, told)),
    };
  });
}
