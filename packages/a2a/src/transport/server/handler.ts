import type { Clock } from "../../base/index.ts";
import type { UniversalHandler, UniversalRequest, UniversalResponse } from "../../protocol/index.ts";
import type { HttpEndpoint, Target } from "./binding.ts";
import type { ServerHost } from "./host.ts";
import { checkMounts } from "./check-mounts.ts";
import { pathBelow, pathsOf, tenantBases, tenantPath, type ServiceMount } from "./mounts.ts";
import { withCors, type CorsOptions } from "./cors.ts";
import { cardEndpoint, cardPathsOf, type CardEndpoint, type CardOptions } from "../discovery/handler.ts";
import { notFound } from "../discovery/errors.ts";
import { jsonRpcEndpoint } from "../jsonrpc/handler.ts";
import { errorResponse as jsonrpcError } from "../jsonrpc/errors.ts";
import { errorResponse as restError } from "../rest/errors.ts";
import { failureOf } from "./response.ts";
import { restEndpoint } from "../rest/handler.ts";
import { compileRoutes, matchRoute } from "../rest/routes.ts";
import type { Codec } from "../../wire/codec.ts";

export { admission } from "./hosts.ts";
export { Unfinished } from "./unfinished.ts";
export type { CorsOptions, ServiceMount };

/** What is the same at every address of a host. */
export interface RouterOptions extends Omit<ServerHost, "services">, CardOptions {
  readonly clock: Clock;
  /** Absent: pages of other origins cannot call. */
  readonly cors?: CorsOptions | true;
}

/** Everything behind one base: each binding, and the cards by their path below it. */
interface Base {
  /** By the paths below the base that it is posted to. */
  readonly jsonrpc: ReadonlyMap<string, HttpEndpoint>;
  readonly rest: HttpEndpoint;
  /** Path below the base that those of REST follow. */
  readonly restPath: string;
  readonly cards: ReadonlyMap<string, CardEndpoint>;
}

/**
 * One handler for services at their addresses: JSON-RPC at the base itself, the card below it, REST at every other
 * path, unless a mount says other paths. To versions whose requests cannot name a tenant each tenant has a base of its own, below that of all.
 *
 * @throws A2AError `InvalidParams` when two of them would answer the same address.
 */
export function routeServices(mounts: readonly ServiceMount[], options: RouterOptions): UniversalHandler {
  const { admit, ...rest } = options;
  const { codecs } = rest;
  checkMounts(mounts, codecs);
  const bases = new Map<string, Base>();
  for (const path of new Set(mounts.map((mount) => mount.path))) {
    const here = mounts.filter((mount) => mount.path === path);
    const services = new Map(here.map(({ tenant, service }) => [tenant, service]));
    const host: ServerHost = { ...rest, services };
    const cards = new Map(
      here.flatMap(({ tenant, card, cardPaths = [] }) => {
        const endpoint = cardEndpoint(card, codecs, options);
        return [...cardPathsOf(tenant, codecs), ...cardPaths].map((cardPath) => [cardPath, endpoint] as const);
      }),
    );
    const paths = pathsOf(here[0]);
    const jsonrpc = new Map(withSlash(paths.jsonrpc, jsonRpcEndpoint(host)));
    for (const { tenant, service } of tenantBases(here, codecs)) {
      const alone = new Map([
        [undefined, service],
        [tenant, service],
      ]);
      const endpoint = jsonRpcEndpoint({ ...host, services: alone });
      for (const [at, each] of withSlash(tenantPath(paths.jsonrpc, tenant), endpoint)) jsonrpc.set(at, each);
    }
    bases.set(path, { jsonrpc, rest: restEndpoint(host), restPath: paths.rest, cards });
  }
  const elsewhere = pathsElsewhere(mounts, codecs);
  const beside = new Set(codecs.flatMap((codec) => codec.rest.elsewhere ?? []).map((route) => route.path));
  const find = baseFinder(bases);
  const refusal = (request: UniversalRequest, path: string): UniversalResponse | undefined => {
    try {
      admit?.(request);
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
    if (away !== undefined) return (bases.get(away.base) as Base).rest.answer(request, { path: away.path, query });
    const found = find(path);
    if (found === undefined) return notFound(codecs[0]);
    const { base, rest } = found;
    const jsonrpc = base.jsonrpc.get(rest);
    if (jsonrpc !== undefined) return jsonrpc.answer(request, { path: rest, query });
    const card = base.cards.get(rest);
    if (card !== undefined) return card(request, query);
    const below = pathBelow(rest, base.restPath) ?? (beside.has(rest) ? rest : undefined);
    return below === undefined ? notFound(codecs[0]) : base.rest.answer(request, { path: below, query });
  };
  return options.cors === undefined ? handler : withCors(handler, options.cors);
}

/**
 * Tells the URLs that `routeServices` has an answer for, whatever the method. Before any look at who asks: what belongs
 * to another part of an application is none of ours to refuse.
 */
export function knownUrls(
  mounts: readonly ServiceMount[],
  { codecs }: Pick<ServerHost, "codecs">,
): (url: string) => boolean {
  const tables = codecs.map(({ rest: { routes, elsewhere = [] } }) => compileRoutes([...routes, ...elsewhere]));
  const bases = new Map(
    mounts.map(({ path }) => {
      const here = mounts.filter((mount) => mount.path === path);
      const { jsonrpc, rest: restPath } = pathsOf(here[0]);
      const named = here.flatMap(({ tenant, cardPaths = [] }) => [...cardPathsOf(tenant, codecs), ...cardPaths]);
      const posted = [jsonrpc, ...tenantBases(here, codecs).map(({ tenant }) => tenantPath(jsonrpc, tenant))];
      const paths = new Set([...named, ...posted.flatMap((at) => [at, `${at}/`])]);
      return [path, { tenants: here.map(({ tenant }) => tenant), paths, restPath }];
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
      base: { tenants, paths, restPath },
      rest,
    } = found;
    if (paths.has(rest)) return true;
    const below = pathBelow(rest, restPath);
    if (below === undefined) return false;
    const matches = tables.map((table) => matchRoute(table, "GET", below)).filter((match) => match !== undefined);
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
