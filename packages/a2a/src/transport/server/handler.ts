import type { Clock } from "../../base/index.ts";
import { invalidParams, type A2AError, type AgentCard } from "../../model/index.ts";
import type { AgentService, UniversalHandler, UniversalRequest, UniversalResponse } from "../../protocol/index.ts";
import type { Binding, Endpoint, HttpBinding, Target } from "./binding.ts";
import { withCors, type CorsOptions } from "./cors.ts";
import { cardEndpoint, cardPathsOf, type CardEndpoint, type CardOptions } from "../discovery/handler.ts";
import { notFound } from "../discovery/errors.ts";
import { jsonrpcEndpoint } from "../jsonrpc/handler.ts";
import { errorResponse as jsonrpcError } from "../jsonrpc/errors.ts";
import { errorResponse as restError } from "../rest/errors.ts";
import { failureOf } from "./response.ts";
import { restEndpoint } from "../rest/handler.ts";
import { compileRoutes, firstSegments, matchRoute, wholeSegments } from "../rest/routes.ts";
import type { Codec } from "../../wire/codec.ts";
import { KeepAlive } from "../sse/keep-alive.ts";

export { admission } from "./hosts.ts";
export { Unfinished } from "./unfinished.ts";
export type { CorsOptions };

/** What is the same at every address of a host. */
export interface RouterOptions extends Omit<Binding, "services">, CardOptions {
  readonly clock: Clock;
  /** Longest silence of a stream, in milliseconds. */
  readonly keepAlive: number;
  /** Absent: pages of other origins cannot call. */
  readonly cors?: CorsOptions | true;
}

/** A service at an address. */
export interface ServiceMount {
  /** Path of its base on the host: empty, or with a leading slash and none at the end. */
  readonly path: string;
  readonly tenant?: string;
  readonly service: AgentService;
  readonly card: AgentCard;
}

/** Everything behind one base: each binding, and the cards by their path below it. */
interface Base {
  /** By the paths below the base that it is posted to. */
  readonly jsonrpc: ReadonlyMap<string, Endpoint>;
  readonly rest: Endpoint;
  readonly cards: ReadonlyMap<string, CardEndpoint>;
}

/**
 * One handler for services at their addresses: JSON-RPC at the base itself, the card below it, REST at every other
 * path. To versions whose requests cannot name a tenant each tenant has a base of its own, below that of all.
 *
 * @throws A2AError `InvalidParams` when two of them would answer the same address.
 */
export function routeServices(mounts: readonly ServiceMount[], options: RouterOptions): UniversalHandler {
  const { codecs } = options;
  checkMounts(mounts, options);
  const keepAlive = new KeepAlive(options.clock, options.keepAlive);
  const bases = new Map<string, Base>();
  for (const path of new Set(mounts.map((mount) => mount.path))) {
    const here = mounts.filter((mount) => mount.path === path);
    const services = new Map(here.map(({ tenant, service }) => [tenant, service]));
    const binding: HttpBinding = { ...options, keepAlive, services };
    const cards = new Map(
      here.flatMap(({ tenant, card }) => {
        const endpoint = cardEndpoint(card, codecs, options);
        return cardPathsOf(tenant, codecs).map((cardPath) => [cardPath, endpoint] as const);
      }),
    );
    const jsonrpc = new Map(withSlash("", jsonrpcEndpoint(binding)));
    for (const { tenant, service } of tenantBases(here, codecs)) {
      const alone = new Map([
        [undefined, service],
        [tenant, service],
      ]);
      const endpoint = jsonrpcEndpoint({ ...binding, services: alone });
      for (const [at, each] of withSlash(`/${encodeURIComponent(tenant)}`, endpoint)) jsonrpc.set(at, each);
    }
    bases.set(path, { jsonrpc, rest: restEndpoint(binding), cards });
  }
  const elsewhere = pathsElsewhere(mounts, codecs);
  const find = baseFinder(bases);
  const refusal = (request: UniversalRequest, path: string): UniversalResponse | undefined => {
    try {
      options.admit?.(request);
      return undefined;
    } catch (thrown) {
      const error = failureOf(thrown, options.logger, { path }, () => false);
      const found = find(path);
      return found?.base.jsonrpc.has(found.rest) === true
        ? jsonrpcError(codecs[0], null, error)
        : restError(codecs[0], error);
    }
  };
  const handler: UniversalHandler = (request) => {
    const { path, query } = splitUrl(request.url);
    const refused = refusal(request, path);
    if (refused !== undefined) return refused;
    const away = elsewhere.get(path);
    if (away !== undefined) return (bases.get(away.base) as Base).rest(request, { path: away.path, query });
    const found = find(path);
    if (found === undefined) return notFound(codecs[0]);
    const { base, rest } = found;
    const jsonrpc = base.jsonrpc.get(rest);
    if (jsonrpc !== undefined) return jsonrpc(request, { path: rest, query });
    const card = base.cards.get(rest);
    return card === undefined ? base.rest(request, { path: rest, query }) : card(request, query);
  };
  return options.cors === undefined ? handler : withCors(handler, options.cors);
}

/**
 * Tells the URLs that `routeServices` has an answer for, whatever the method. Before any look at who asks: what belongs
 * to another part of an application is none of ours to refuse.
 */
export function knownUrls(
  mounts: readonly ServiceMount[],
  { codecs }: Pick<Binding, "codecs">,
): (url: string) => boolean {
  const tables = codecs.map(({ rest: { routes, elsewhere = [] } }) => compileRoutes([...routes, ...elsewhere]));
  const bases = new Map(
    mounts.map(({ path }) => {
      const here = mounts.filter((mount) => mount.path === path);
      const named = here.flatMap(({ tenant }) => cardPathsOf(tenant, codecs));
      const posted = tenantBases(here, codecs).flatMap(({ tenant }) =>
        withSlash(`/${encodeURIComponent(tenant)}`, true),
      );
      const paths = new Set(["", "/", ...named, ...posted.map(([at]) => at)]);
      return [path, { tenants: here.map(({ tenant }) => tenant), paths }];
    }),
  );
  const find = baseFinder(bases);
  const elsewhere = pathsElsewhere(mounts, codecs);
  return (url) => {
    const { path } = splitUrl(url);
    if (elsewhere.has(path)) return true;
    const found = find(path);
    if (found === undefined) return false;
    const {
      base: { tenants, paths },
      rest,
    } = found;
    if (paths.has(rest)) return true;
    const matches = tables.map((table) => matchRoute(table, "GET", rest)).filter((match) => match !== undefined);
    // `/api/tasks` is a path of some tenant to the protocol, and here only where there is one of that name.
    return matches.some(
      ({ tenant }) => tenant === undefined || tenants.some((name) => encodeURIComponent(name ?? "") === tenant),
    );
  };
}

function withSlash<T>(path: string, value: T): readonly (readonly [path: string, value: T])[] {
  return [
    [path, value],
    [`${path}/`, value],
  ];
}

/** The tenants at a base that have one of their own, for versions whose requests cannot name them. */
function tenantBases(
  here: readonly ServiceMount[],
  codecs: readonly Codec[],
): readonly (ServiceMount & { readonly tenant: string })[] {
  if (!codecs.some((codec) => codec.tenantInPath === true)) return [];
  return here.filter((mount): mount is ServiceMount & { readonly tenant: string } => mount.tenant !== undefined);
}

/**
 * Paths beside a base, and at the root, that a version's clients ask as well: below which base they stand for what. None
 * that two agents would answer, or that belong to the base that they are below.
 */
function pathsElsewhere(
  mounts: readonly ServiceMount[],
  codecs: readonly Codec[],
): ReadonlyMap<string, { readonly base: string; readonly path: string }> {
  const paths = codecs.flatMap((codec) => codec.rest.elsewhere ?? []).map((route) => route.path);
  const bases = new Set(mounts.map((mount) => mount.path));
  const found = new Map<string, Set<string>>();
  for (const base of bases) {
    for (const near of new Set(["", base.slice(0, base.lastIndexOf("/") + 1).replace(/\/$/, "")])) {
      if (!bases.has(near)) found.set(near, (found.get(near) ?? new Set()).add(base));
    }
  }
  return new Map(
    [...found]
      .filter(([, claims]) => claims.size === 1)
      .flatMap(([near, claims]) =>
        paths.map((path) => [near + path, { base: [...claims][0] as string, path }] as const),
      ),
  );
}

function splitUrl(url: string): Target {
  const mark = url.indexOf("?");
  return mark < 0 ? { path: url, query: "" } : { path: url.slice(0, mark), query: url.slice(mark + 1) };
}

/** Finds the longest base that a path begins with, and what comes after it: cut at its slashes, from where a base can end. */
function baseFinder<T>(bases: ReadonlyMap<string, T>): (path: string) => { base: T; rest: string } | undefined {
  const longest = Math.max(...[...bases.keys()].map((path) => path.length));
  return (path) => {
    let end = path.length <= longest ? path.length : path.lastIndexOf("/", longest);
    for (; end >= 0; end = path.lastIndexOf("/", end - 1)) {
      const base = bases.get(path.slice(0, end));
      if (base !== undefined) return { base, rest: path.slice(end) };
      if (end === 0) break;
    }
    return undefined;
  };
}

const pathPattern = /^(?:\/[\w\-.~!$&'()*+,;=:@%]+)*$/;

function checkMounts(mounts: readonly ServiceMount[], { codecs }: Pick<Binding, "codecs">): void {
  const never = [".well-known", ".", "..", ""];
  // One whose name stands before the paths of another version is served all the same (`/v1`).
  const noTenant = new Set([...never, ...codecs.flatMap((codec) => wholeSegments(codec.rest.routes))]);
  const noPath = new Set([...never, ...codecs.flatMap((codec) => firstSegments(codec.rest.routes))]);
  const taken = new Set<string>();
  for (const { path, tenant } of mounts) {
    if (!pathPattern.test(path) || path.split("/").some((segment) => segment === "." || segment === "..")) {
      throw refuse("path", `${JSON.stringify(path)} is no path such as "/weather"`);
    }
    if (tenant !== undefined && noTenant.has(tenant)) {
      throw refuse("tenant", `${JSON.stringify(tenant)} cannot be told from a path of the protocol`);
    }
    const key = JSON.stringify([path, tenant]);
    if (taken.has(key)) {
      const name = tenant === undefined ? "" : ` under the tenant ${JSON.stringify(tenant)}`;
      throw refuse("path", `two agents at ${path === "" ? "/" : path}${name}`);
    }
    taken.add(key);
  }
  for (const { path } of mounts) {
    for (const outer of mounts) {
      if (path === outer.path || !path.startsWith(`${outer.path}/`)) continue;
      const segment = path.slice(outer.path.length + 1).split("/")[0] as string;
      if (noPath.has(segment) || segment === encodeURIComponent(outer.tenant ?? "")) {
        throw refuse("path", `${path} is an address of the agent at ${outer.path === "" ? "/" : outer.path}`);
      }
    }
  }
}

function refuse(field: string, description: string): A2AError {
  return invalidParams([{ field, description }], `This cannot be served: ${description}`);
}
