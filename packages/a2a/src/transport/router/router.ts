import type { AgentService, UniversalHandler, UniversalRequest, UniversalResponse } from "../../protocol/index.ts";
import { cardEndpoint, cardPathsOf, notFound, type CardOptions } from "../discovery/handler.ts";
import { withCors } from "../server/cors.ts";
import type { HttpEndpoint, ServerBinding, Target } from "../server/binding.ts";
import type { ServerHost } from "../server/host.ts";
import { pathBelow } from "../server/paths.ts";
import { errorResponse, failureOf } from "../server/response.ts";
import { checkBindings, checkMounts } from "./check-mounts.ts";
import { checkNesting, claimsOf, owns, type Claim, type ClaimedBase } from "./claims.ts";
import { basesOf, type ServiceMount } from "./mounts.ts";

/** What is the same at every address of a server. */
export interface RouterOptions extends Omit<ServerHost, "services">, CardOptions {
  readonly bindings: readonly ServerBinding[];
}

/** Whose address a URL is. */
export interface Found {
  /** What answers at the URL. */
  readonly endpoint: HttpEndpoint;
  /** The path and query for the endpoint. */
  readonly target: Target;
}

export interface Router {
  readonly handle: UniversalHandler;
  /** Who answers at a URL, as `UniversalRequest` has it: a binding, or a card. */
  find(url: string): Found | undefined;
  /** Whether there is something at a URL, by whatever method: what belongs to another part of an application is none of ours to refuse. */
  answers(url: string): boolean;
}

/** What is found below a base. */
interface Base {
  /** By path below the base. */
  readonly exact: ReadonlyMap<string, HttpEndpoint>;
  /** Those who have everything below a path, the longest path first. */
  readonly below: readonly (Pick<Claim, "owns"> & { readonly below: string; readonly endpoint: HttpEndpoint })[];
}

/**
 * Serves agents at their addresses: each binding at what it claims, and the cards.
 *
 * @throws A2AError `InvalidParams` when two of them would answer the same address.
 */
export function createRouter(mounts: readonly ServiceMount[], options: RouterOptions): Router {
  const { admit, bindings, codecs, cors, logger } = options;
  checkBindings(bindings);
  checkMounts(mounts);
  const claimed = basesOf(mounts).map((base) => claimsOf(base, bindings, codecs));
  checkNesting(claimed);
  const bases = new Map(claimed.map((base) => [base.path, openBase(base, options)]));
  const beside = pathsBeside(claimed, bases);
  const findBase = baseFinder(bases);

  const find = (url: string): Found | undefined => {
    const mark = url.indexOf("?");
    const path = mark < 0 ? url : url.slice(0, mark);
    const query = mark < 0 ? "" : url.slice(mark + 1);
    const away = beside.get(path);
    if (away !== undefined) return { endpoint: away.endpoint, target: { path: away.path, query } };
    const found = findBase(path);
    if (found === undefined) return undefined;
    const { base, rest } = found;
    const endpoint = base.exact.get(rest);
    if (endpoint !== undefined) return { endpoint, target: { path: rest, query } };
    for (const each of base.below) {
      const below = pathBelow(rest, each.below);
      if (below !== undefined) return { endpoint: each.endpoint, target: { path: below, query } };
    }
    return undefined;
  };

  const refusal = (request: UniversalRequest, found: Found | undefined): UniversalResponse | undefined => {
    try {
      admit?.(request);
      return undefined;
    } catch (thrown) {
      const error = failureOf(thrown, logger, { url: request.url }, () => false);
      return found?.endpoint.refuse?.(error) ?? errorResponse(codecs[0], error);
    }
  };

  const handle: UniversalHandler = (request) => {
    const found = find(request.url);
    const refused = refusal(request, found);
    if (refused !== undefined) return refused;
    return found === undefined ? notFound(codecs[0]) : found.endpoint.answer(request, found.target);
  };

  return {
    handle: cors === undefined ? handle : withCors(handle, cors),
    find,
    answers(url) {
      const path = url.split("?", 1)[0] as string;
      if (beside.has(path)) return true;
      const found = findBase(path);
      if (found === undefined) return false;
      const { base, rest } = found;
      return base.exact.has(rest) || base.below.some((each) => owns(each, rest));
    },
  };
}

/** Opens the bindings at a base, and puts the cards there. */
function openBase({ mounts, claims }: ClaimedBase, options: RouterOptions): Base {
  const { admit: _, ...host } = options;
  const services = new Map(mounts.map(({ tenant, service }) => [tenant, service]));
  const exact = new Map<string, HttpEndpoint>();
  const below = claims.flatMap((claim) => {
    const endpoint = claim.http.open({ ...host, services });
    for (const { path, tenant } of claim.paths ?? []) {
      const own = tenant === undefined ? endpoint : claim.http.open({ ...host, services: alone(services, tenant) });
      exact.set(path, own).set(`${path}/`, own);
    }
    for (const path of claim.beside ?? []) exact.set(path, endpoint);
    return claim.below === undefined ? [] : [{ ...claim, below: claim.below, endpoint }];
  });
  for (const { tenant, card, cardPaths = [] } of mounts) {
    const endpoint = cardEndpoint(card, options.codecs, options);
    for (const path of [...cardPathsOf(tenant, options.codecs), ...cardPaths]) exact.set(path, endpoint);
  }
  return { exact, below: below.sort((one, other) => other.below.length - one.below.length) };
}

/** One tenant's service, by its name and without. */
function alone(services: ReadonlyMap<string | undefined, AgentService>, tenant: string): ServerHost["services"] {
  const service = services.get(tenant) as AgentService;
  return new Map([
    [undefined, service],
    [tenant, service],
  ]);
}

/**
 * Paths beside a base, and at the root, that clients ask for as well. None that two agents would answer, or that belong to
 * the base that they are below.
 */
function pathsBeside(claimed: readonly ClaimedBase[], bases: ReadonlyMap<string, Base>) {
  const found = new Map<string, ClaimedBase[]>();
  for (const base of claimed) {
    const { path } = base;
    for (const near of new Set(["", path.slice(0, Math.max(0, path.lastIndexOf("/")))])) {
      if (!bases.has(near)) found.set(near, [...(found.get(near) ?? []), base]);
    }
  }
  const paths = new Map<string, { readonly endpoint: HttpEndpoint; readonly path: string }>();
  for (const [near, [base, another]] of found) {
    if (base === undefined || another !== undefined) continue;
    for (const path of base.claims.flatMap((claim) => claim.beside ?? [])) {
      paths.set(near + path, { endpoint: bases.get(base.path)?.exact.get(path) as HttpEndpoint, path });
    }
  }
  return paths;
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
