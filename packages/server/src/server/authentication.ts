import { skillInMetadata } from "@parley/a2a/internal/auth/authorized";
import type { AuthenticationPlace, Authenticator, SkillOf } from "@parley/a2a/internal/auth/port";
import { withoutSlashes } from "@parley/a2a/internal/base/index";
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
import type { HandlerOptions } from "./options.ts";
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
 * Refuses options about callers that are of another kind, as only JavaScript can pass them: each call would fail.
 *
 * @throws A2AError `InvalidParams`.
 */
export function checkCallers(
  options: Pick<HandlerOptions, "authenticator" | "authorizer" | "ownerOf" | "skillOf">,
): void {
  const { authenticator } = options;
  if (authenticator !== undefined && typeof authenticator?.authenticate !== "function") {
    const several = Array.isArray(authenticator) ? ". Several go together by anyOf() or allOf()" : "";
    throw cannotServe("authenticator", `must be an authenticator, such as apiKey(keys)${several}`);
  }
  for (const name of ["authorizer", "ownerOf", "skillOf"] as const) {
    if (options[name] !== undefined && typeof options[name] !== "function")
      throw cannotServe(name, "must be a function");
  }
}

/**
 * How callers are found.
 *
 * @throws A2AError `InvalidParams` where a card demands a scheme that nobody checks, or is not written as A2A 1.0 says.
 */
export function authenticationOf(
  authenticator: Authenticator | undefined,
  handler: HandlerPlace,
  skillOf: SkillOf = skillInMetadata,
  cardReaders: HandlerOptions["cardReaders"] = "anyone",
): Authentication {
  for (const agent of handler.agents) checkRequirements(agent, authenticator);
  if (authenticator === undefined) {
    return { authenticate: () => anonymous, guard: (service) => service, documents: [] };
  }
  // Not loaded where there is no authenticator.
  let checks: Checks | undefined;
  const load = async (): Promise<Checks> => (checks ??= await import("@parley/a2a/internal/auth/guarded"));
  const placeOf = placesOf(authenticator, handler);
  return {
    async authenticate(request) {
      const principal = await authenticator.authenticate(request, placeOf(request.url));
      return principalOfCall((checks ?? (await load())).vouched(authenticator, principal), request);
    },
    guard(service, { card, mount, url }) {
      const byAuthenticator = mount.agent.securityRequirements === undefined;
      const place = { ...resourceAt(url, authenticator, handler), url };
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
    documents: documentsOf(authenticator, handler, cardReaders === "anyone"),
  };
}

type Checks = typeof import("@parley/a2a/internal/auth/guarded");

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
  const demanded = demandedBy(agents);
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
      ...(demanded.length > 0 && { demanded }),
      url: inside === undefined ? origin + url : publicUrl + url.slice(basePath.length),
    };
  };
}

/** The schemes that skills demand, and cards whose requirements are not those of the authenticator. */
function demandedBy(agents: readonly MountedAgent[]): readonly string[] {
  const requirements = agents.flatMap(({ card, mount }) => [
    ...(mount.agent.securityRequirements === undefined ? [] : (card.securityRequirements ?? [])),
    ...card.skills.flatMap(({ securityRequirements = [] }) => securityRequirements),
  ]);
  return [...new Set(requirements.flatMap(({ schemes = {} }) => Object.keys(schemes)))];
}

const metadataPath = "/.well-known/oauth-protected-resource";

/** The URL of the metadata of a resource: the well-known path is put between its host and its path (RFC 9728 §3.1). */
function metadataUrlOf(resource: string): string {
  const { origin, pathname } = new URL(resource);
  return origin + metadataPath + withoutSlashes(pathname);
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

/** The metadata of each agent, and of the server. They repeat what the cards say only where these are public. */
function documentsOf(
  { resource }: Authenticator,
  handler: HandlerPlace,
  arePublic: boolean,
): readonly PublicDocument[] {
  if (resource === undefined) return [];
  const { publicUrl, basePath, agents } = handler;
  const urls = [...new Set([publicUrl, ...agents.map(({ url }) => url)])];
  return urls.map((url) => {
    const card = arePublic ? agents.find((agent) => agent.url === url)?.card : undefined;
    const told = { resource: url, name: card?.name, documentation: card?.documentationUrl };
    const metadata = new URL(metadataUrlAt(url, handler));
    const moved = withoutSlashes(new URL(publicUrl).pathname) !== basePath;
    return {
      path: moved ? basePath + metadata.href.slice(publicUrl.length) : metadata.pathname,
      name: "The metadata of a resource",
      mediaType: "application/json",
      async load() {
        const { resourceMetadata } = await import("@parley/a2a/internal/auth/resources");
        return resourceMetadata(resource, told);
      },
    };
  });
}

/* What a card demands of callers, as it is written in a program or in a file of JSON. */

/**
 * Refuses a card whose requirements are not those of A2A 1.0, or name a scheme that is never checked: callers would believe that they
 * are checked. The types find most of this; cards of JavaScript and of JSON files have none.
 *
 * @throws A2AError `InvalidParams`.
 */
function checkRequirements({ card, mount }: MountedAgent, authenticator: Authenticator | undefined): void {
  const checked = authenticator?.securitySchemes ?? {};
  const all = [
    { where: "", written: mount.agent, of: card },
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

/** The schemes of requirements. One without `schemes` lets everyone in, so it has to be `{}` or `{ schemes: {} }` and nothing else. */
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
