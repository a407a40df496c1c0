import { withoutQuery, type Logger } from "../../base/index.ts";
import type { AgentService, UniversalHandler, UniversalRequest, UniversalResponse } from "../../protocol/index.ts";
import {
  cardEndpoint,
  cardPathsOf,
  documentEndpoint,
  notFound,
  type DocumentOptions,
  type PublicDocument,
} from "../discovery/handler.ts";
import {
  basesOf,
  checkDocuments,
  checkMounts,
  checkNesting,
  checkRoutes,
  claimsOf,
  owns,
  type Claim,
  type ClaimedBase,
  type ServiceMount,
} from "./claims.ts";
import {
  cannotServe,
  openHttp,
  pathBelow,
  type AnyPathEndpoint,
  type HttpEndpoint,
  type ServerBinding,
  type ServerHost,
  type Target,
} from "../server/binding.ts";
import { withCors } from "../server/origins.ts";
import { errorResponse, failureOf } from "../server/response.ts";
import type { Codec } from "../../wire/codec.ts";

/** Options of a router. */
export interface RouterOptions extends Omit<ServerHost, "services">, DocumentOptions {
  readonly bindings: readonly ServerBinding[];
  /** Further endpoints of the server itself. Default: none. */
  readonly endpoints?: readonly PublicEndpoint[];
  /** Routes of the application, by path. Each route has all paths below its path. Default: none. */
  readonly routes?: ReadonlyMap<string, HttpEndpoint>;
  /** The pages for browsers. Default: none. */
  readonly pages?: Pages;
}

/** An endpoint at a single path, for every HTTP method. */
export interface PublicEndpoint {
  /** The path, relative to the path of `publicUrl`. */
  readonly path: string;
  /** The subject of messages about the endpoint. */
  readonly name: string;
  /** Whether to skip the checks of host and origin. Default false. */
  readonly open?: boolean;
  /** Answers a request. */
  answer(request: UniversalRequest): Promise<UniversalResponse>;
}

/** The endpoint at a URL. */
export interface Found {
  /** Answers the requests to the URL. */
  readonly endpoint: HttpEndpoint;
  /** Path and query, relative to the claim of the endpoint. */
  readonly target: Target;
}

/** Finds the endpoint of each request. URLs have the form of `UniversalRequest.url`, a path with a query. */
export interface Router {
  /** Answers a request through its endpoint. */
  readonly handle: UniversalHandler;
  /** The endpoint at a URL, which is a binding or a card. */
  find(url: string): Found | undefined;
  /** Whether the router serves a URL, with any HTTP method. If not, the URL may belong to another part of the application. */
  answers(url: string): boolean;
  /**
   * Checks new mounts and their documents. The returned function then serves them. Requests in progress and bases with
   * unchanged mounts keep their endpoint.
   *
   * @throws A2AError `InvalidParams` if two mounts claim the same path.
   */
  prepare(mounts: readonly ServiceMount[], documents?: readonly PublicDocument[]): () => void;
}

/** The current endpoints. */
interface Table {
  readonly claimed: ReadonlyMap<string, ClaimedBase>;
  readonly bases: ReadonlyMap<string, Base>;
  /** Single paths that are not below a base. */
  readonly beside: ReadonlyMap<string, { readonly endpoint: HttpEndpoint; readonly path: string }>;
  readonly paged: ReadonlyMap<string, readonly ServiceMount[]> | undefined;
  findBase(path: string): { readonly base: Base; readonly rest: string } | undefined;
}

/** The endpoints of a base. */
interface Base {
  /** Endpoints of single paths below the base. */
  readonly exact: ReadonlyMap<string, HttpEndpoint>;
  /** Endpoints that serve everything below a path, the longest path first. */
  readonly below: readonly (Pick<Claim, "owns"> & { readonly below: string; readonly endpoint: HttpEndpoint })[];
}

/** Serves each binding at its claimed paths, and the cards. Throws `InvalidParams` if two mounts claim the same path. */
export function createRouter(
  mounts: readonly ServiceMount[],
  options: RouterOptions,
  documents: readonly PublicDocument[] = [],
): Router {
  const { admit, bindings, codecs, cors, endpoints = [], logger, pages, routes } = options;
  checkBindings(bindings);
  const own = new Map(endpoints.map((each) => [each.path, guardedEndpoint(each, codecs[0], logger)]));
  const open = new Set(endpoints.flatMap((each) => (each.open === true ? [own.get(each.path)] : [])));
  const lasting: LastingServices = new Map();
  let table = tableOf(mounts, documents, { own, options, lasting });
  refill(lasting, table);

  const find = (url: string): Found | undefined => {
    const mark = url.indexOf("?");
    const path = mark < 0 ? url : url.slice(0, mark);
    const query = mark < 0 ? "" : url.slice(mark + 1);
    const away = table.beside.get(path);
    if (away !== undefined) return { endpoint: away.endpoint, target: { path: away.path, query } };
    if (routes !== undefined) {
      const routed = routeAt(routes, path);
      if (routed !== undefined) return { ...routed, target: { path: routed.path, query } };
    }
    const found = table.findBase(path);
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

  const refusal = (
    request: UniversalRequest,
    found: Found | undefined,
  ): UniversalResponse | Promise<UniversalResponse> | undefined => {
    try {
      admit?.(request);
      return undefined;
    } catch (thrown) {
      if (found !== undefined && open.has(found.endpoint)) return undefined;
      const error = failureOf(thrown, logger, { url: withoutQuery(request.url) }, () => false);
      return found?.endpoint.refuse?.(error, request) ?? errorResponse(codecs[0], error);
    }
  };

  const handle: UniversalHandler = (request) => {
    const found = find(request.url);
    const refused = refusal(request, found);
    if (refused !== undefined) return refused;
    if (table.paged !== undefined && request.method !== "POST" && readsHtml(request)) {
      const shown = table.paged.get(withoutQuery(request.url));
      if (shown !== undefined && pages !== undefined) return pages.answer(request, shown);
    }
    return found === undefined ? notFound(codecs[0]) : found.endpoint.answer(request, found.target);
  };

  return {
    handle: withCors(handle, cors, options.refusedOrigin),
    find,
    answers(url) {
      const [path = ""] = url.split("?", 1);
      if (table.beside.has(path) || (routes !== undefined && routeAt(routes, path) !== undefined)) return true;
      const found = table.findBase(path);
      if (found === undefined) return false;
      const { base, rest } = found;
      return base.exact.has(rest) || base.below.some((each) => owns(each, rest));
    },
    prepare(others, published = []) {
      const next = tableOf(others, published, { own, options, lasting, before: table });
      return () => {
        table = next;
        refill(lasting, table);
      };
    },
  };
}

/**
 * The services of bindings that take over connections, by base and tenant. Such a connection outlives a change of the mounts, but its next
 * call must reach the current service.
 */
type LastingServices = Map<string, Lasting>;

interface Lasting {
  readonly base: string;
  /** The only tenant of the path. */
  readonly tenant: string | undefined;
  readonly services: Map<string | undefined, AgentService>;
}

/** Inserts the current services, and removes bases that no longer exist. */
function refill(lasting: LastingServices, { claimed }: Pick<Table, "claimed">): void {
  for (const [key, { base, tenant, services }] of lasting) {
    services.clear();
    const now = new Map(claimed.get(base)?.mounts.map((mount) => [mount.tenant, mount.service]));
    if (now.size === 0) lasting.delete(key);
    if (tenant !== undefined && !now.has(tenant)) continue;
    for (const [name, service] of tenant === undefined ? now : alone(now, tenant)) services.set(name, service);
  }
}

interface TableInit {
  /** The endpoints of the server itself, by their paths. */
  readonly own: ReadonlyMap<string, HttpEndpoint>;
  readonly options: RouterOptions;
  readonly lasting: LastingServices;
  /** The previous table, whose bases with unchanged mounts are reused. */
  readonly before?: Table;
}

function tableOf(
  mounts: readonly ServiceMount[],
  documents: readonly PublicDocument[],
  { own, options, lasting, before }: TableInit,
): Table {
  const { bindings, codecs, methods, pages, routes, endpoints = [] } = options;
  checkMounts(mounts);
  const claimed = new Map<string, ClaimedBase>();
  const bases = new Map<string, Base>();
  for (const base of basesOf(mounts)) {
    const former = before?.claimed.get(base.path);
    const same = former !== undefined && sameMounts(former.mounts, base.mounts) ? former : undefined;
    claimed.set(base.path, same ?? claimsOf(base, bindings, codecs, methods));
  }
  checkNesting(claimed);
  checkDocuments([...documents, ...endpoints], claimed);
  if (routes !== undefined) {
    checkRoutes(
      new Set(routes.keys()),
      claimed,
      [...documents, ...endpoints].map(({ path }) => path),
    );
  }
  for (const [path, base] of claimed) {
    const former = before?.claimed.get(path) === base ? before.bases.get(path) : undefined;
    bases.set(path, former ?? openBase(base, options, lasting));
  }
  const all = [...claimed.values()];
  const beside = pathsBeside(all, bases);
  for (const each of documents) {
    beside.set(each.path, { endpoint: documentEndpoint(each, codecs[0], options), path: each.path });
  }
  for (const [path, endpoint] of own) beside.set(path, { endpoint, path });
  const paged = pages === undefined ? undefined : pagePaths(all, pages.root);
  return { claimed, bases, beside, paged, findBase: baseFinder(bases) };
}

function sameMounts(some: readonly ServiceMount[], others: readonly ServiceMount[]): boolean {
  return some.length === others.length && some.every((mount, at) => mount === others[at]);
}

/** The longest route at or above a path, and the rest of the path. */
function routeAt(routes: ReadonlyMap<string, HttpEndpoint>, path: string) {
  for (let end = path.length; end > 0; end = path.lastIndexOf("/", end - 1)) {
    const endpoint = routes.get(path.slice(0, end));
    if (endpoint !== undefined) return { endpoint, path: path.slice(end) };
  }
  return undefined;
}

/** Opens the bindings at a base, and adds the cards. */
function openBase({ path: base, mounts, claims }: ClaimedBase, options: RouterOptions, lasting: LastingServices): Base {
  const { admit: _, ...host } = options;
  const all = new Map(mounts.map(({ tenant, service }) => [tenant, service]));
  const servicesOf = (by: string, tenant?: string): ServerHost["services"] => {
    const binding = options.bindings.find(({ name }) => name === by);
    if (binding === undefined || !("upgradesTo" in binding)) return tenant === undefined ? all : alone(all, tenant);
    const key = JSON.stringify([base, tenant]);
    const found = lasting.get(key) ?? { base, tenant, services: new Map() };
    lasting.set(key, found);
    return found.services;
  };
  const exact = new Map<string, HttpEndpoint>();
  const below = claims.flatMap((claim) => {
    const endpoint = openHttp(claim.by, claim.http, { ...host, services: servicesOf(claim.by) });
    for (const { path, tenant } of claim.paths ?? []) {
      const own =
        tenant === undefined
          ? endpoint
          : openHttp(claim.by, claim.http, { ...host, services: servicesOf(claim.by, tenant) });
      exact.set(path, own).set(`${path}/`, own);
    }
    for (const path of claim.beside ?? []) exact.set(path, endpoint);
    return claim.below === undefined ? [] : [{ ...claim, below: claim.below, endpoint }];
  });
  for (const { tenant, card, signedCard = () => card, cardPaths = [], gate } of mounts) {
    const endpoint = cardEndpoint(signedCard, options.codecs, options, gate);
    for (const path of [...cardPathsOf(tenant, options.codecs), ...cardPaths]) exact.set(path, endpoint);
  }
  return { exact, below: below.sort((one, other) => other.below.length - one.below.length) };
}

/** An endpoint that never rejects. */
function guardedEndpoint({ answer }: PublicEndpoint, codec: Codec, logger: Logger): HttpEndpoint {
  return {
    async answer(request) {
      try {
        return await answer(request);
      } catch (thrown) {
        // The query may contain a credential.
        const url = withoutQuery(request.url);
        return errorResponse(
          codec,
          failureOf(thrown, logger, { url }, () => request.signal.aborted),
        );
      }
    },
  };
}

/** The service of one tenant, for requests with this tenant and requests without a tenant. */
function alone(services: ReadonlyMap<string | undefined, AgentService>, tenant: string): ServerHost["services"] {
  const service = services.get(tenant);
  return new Map(service === undefined ? [] : [undefined, tenant].map((name) => [name, service] as const));
}

/**
 * The paths that bindings claim next to their base and at the root (`HttpClaim.beside`), unless two bases claim them or they belong to
 * another base.
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
      const endpoint = bases.get(base.path)?.exact.get(path);
      if (endpoint !== undefined) paths.set(near + path, { endpoint, path });
    }
  }
  return paths;
}

/** Returns a function that finds the longest base at the start of a path, and the rest of the path. */
function baseFinder<T>(bases: ReadonlyMap<string, T>): (path: string) => { base: T; rest: string } | undefined {
  let longest = 0;
  for (const path of bases.keys()) longest = Math.max(longest, path.length);
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

/** Answers a request with the any-path endpoint that claims it, or else with `handle`. */
export function beforeRouter(endpoints: readonly AnyPathEndpoint[], handle: UniversalHandler): UniversalHandler {
  const [only, ...more] = endpoints;
  if (only === undefined) return handle;
  if (more.length === 0) return (request) => (only.claims(request) ? only.answer(request) : handle(request));
  return (request) => {
    const found = endpoints.find((endpoint) => endpoint.claims(request));
    return found === undefined ? handle(request) : found.answer(request);
  };
}

/** The bindings that A2A 1.0 names (§5.8). All other bindings are named by a URI. */
const official: readonly string[] = ["JSONRPC", "HTTP+JSON", "GRPC"];

/** Rejects bindings without a valid, unique name. Throws `InvalidParams`, which names the option. */
export function checkBindings(bindings: readonly ServerBinding[]): void {
  if (bindings.length === 0) throw cannotServe("bindings", "must have at least one binding, such as jsonRpcBinding()");
  const names = new Set<string>();
  for (const [index, binding] of bindings.entries()) {
    const field = `bindings[${index}]`;
    // JavaScript callers can pass anything.
    const name: unknown = binding?.name;
    if (typeof name !== "string" || typeof binding.interfaces !== "function") {
      throw cannotServe(field, "must be a binding, such as jsonRpcBinding()");
    }
    if (!official.includes(name) && !URL.canParse(name)) {
      const rule = `The name of a binding is ${official.join(", ")} or a URI (A2A 1.0 §5.8)`;
      throw cannotServe(field, `has the name ${JSON.stringify(name)}. ${rule}`);
    }
    if (names.has(name)) {
      throw cannotServe(field, `is a second binding with the name ${JSON.stringify(name)}. Remove one of the two`);
    }
    names.add(name);
  }
}

/* Detects requests of browsers, and finds the page for each. */

/** The pages that browsers get at the addresses of agents. */
export interface Pages {
  /** Path of the page that lists all agents, unless an agent has this path. */
  readonly root: string;
  /** Answers with the page of one agent, or of several. */
  answer(request: UniversalRequest, mounts: readonly ServiceMount[]): Promise<UniversalResponse>;
}

/** The agents by the path of their page, which is the path to which clients POST, or an otherwise unused path. */
export function pagePaths(claimed: readonly ClaimedBase[], root: string): ReadonlyMap<string, readonly ServiceMount[]> {
  const found = new Map<string, readonly ServiceMount[]>();
  const add = (path: string, mounts: readonly ServiceMount[]): void =>
    void found.set(path, mounts).set(`${path}/`, mounts);
  add(
    root,
    claimed.flatMap(({ mounts }) => mounts),
  );
  for (const { path: base, mounts, claims, paths } of claimed) {
    const untold = mounts.filter(({ tenant }) => tenant === undefined);
    const common = untold.length > 0 ? untold : mounts;
    if (!paths.has("") && !claims.some((claim) => owns(claim, ""))) add(base, common);
    else for (const own of [base, `${base}/`]) found.delete(own);
    for (const { path, tenant, page } of claims.flatMap((claim) => claim.paths ?? [])) {
      if (page !== true) continue;
      add(base + path, tenant === undefined ? common : mounts.filter((mount) => mount.tenant === tenant));
    }
  }
  return found;
}

/** Whether a browser wants a page, because it accepts HTML explicitly, and prefers neither JSON nor events. */
export function readsHtml(request: UniversalRequest): boolean {
  const accept = request.header("accept")?.toLowerCase();
  if ((request.method !== "GET" && request.method !== "HEAD") || !accept?.includes("text/html")) return false;
  const weights = new Map(
    accept.split(",").map((range) => {
      const [type = "", ...parameters] = range.split(";").map((part) => part.trim());
      const q = parameters.find((parameter) => parameter.startsWith("q="))?.slice(2);
      return [type, q === undefined ? 1 : Number(q)];
    }),
  );
  const html = weights.get("text/html") ?? 0;
  const others = ["application/json", "application/a2a+json", "text/event-stream"].map(
    (type) => weights.get(type) ?? 0,
  );
  return html > 0 && others.every((weight) => weight <= html);
}
