import type { AgentCard, A2AError } from "../../model/index.ts";
import { isObject } from "../../model/schema.ts";
import type { AgentService, MethodRoute } from "../../protocol/index.ts";
import type { Codec } from "../../wire/codec.ts";
import { cardPathsOf, type CardGate, type PublicDocument } from "../discovery/handler.ts";
import {
  cannotServe,
  hasFunction,
  pathBelow,
  returned,
  type HttpBinding,
  type HttpClaim,
  type ServerBinding,
} from "../server/binding.ts";

/* Assigns the paths of a server to bindings and cards. Creating a server fails if two claims have the same path. */

/** Paths of bindings below the base of an agent, by name: `{ JSONRPC: "/jsonrpc" }`. Default `""`, the base itself. */
export type InterfacePaths = Readonly<Record<string, string>>;

/** A service at an address. */
export interface ServiceMount {
  /** Path of the base on the host: empty, or with a leading slash and no trailing slash. */
  readonly path: string;
  readonly tenant?: string;
  /** Paths of the bindings below the base, which are the same for all services of a base. */
  readonly interfaces?: InterfacePaths;
  /** Further paths below the base where its card is served. */
  readonly cardPaths?: readonly string[];
  readonly service: AgentService;
  readonly card: AgentCard;
  /** The served card, if it is signed. Default: `card`. */
  readonly signedCard?: () => Promise<AgentCard>;
  /** Decides which callers may read the card and its page. Default: anyone. */
  readonly gate?: CardGate;
}

/** The services at one base. */
export interface MountedBase {
  readonly path: string;
  readonly mounts: readonly ServiceMount[];
}

/** Groups mounts by their bases. */
export function basesOf(mounts: readonly ServiceMount[]): readonly MountedBase[] {
  const bases = new Map<string, ServiceMount[]>();
  for (const mount of mounts) {
    const same = bases.get(mount.path);
    if (same === undefined) bases.set(mount.path, [mount]);
    else same.push(mount);
  }
  return [...bases].map(([path, own]) => ({ path, mounts: own }));
}

/** A path and each path above it, longest first, with the rest of the path after it. */
function* pathsAbove(path: string): Generator<readonly [outer: string, inner: string]> {
  for (let end = path.length; end > 0; end = path.lastIndexOf("/", end - 1))
    yield [path.slice(0, end), path.slice(end)];
  yield ["", path];
}

/** The claim of one binding at a base. */
export interface Claim extends HttpClaim {
  /** Name of the binding. */
  readonly by: string;
  readonly http: HttpBinding;
}

/** A base with the claims of all bindings. */
export interface ClaimedBase extends MountedBase {
  readonly claims: readonly Claim[];
  /** The owner of each single path below the base: the name of a binding, or `a card`. */
  readonly paths: ReadonlyMap<string, string>;
}

const card = "a card";

/** Collects the claims of all bindings at a base. Throws `InvalidParams` if two claims have the same address. */
export function claimsOf(
  base: MountedBase,
  bindings: readonly ServerBinding[],
  codecs: readonly Codec[],
  methods: readonly MethodRoute[] = [],
): ClaimedBase {
  checkInterfaces(
    base,
    bindings.map(({ name }) => name),
  );
  const tenants = base.mounts.map(({ tenant }) => tenant);
  const claims = bindings.flatMap(({ name, http }): readonly Claim[] => {
    if (http === undefined) return [];
    const path = base.mounts[0]?.interfaces?.[name] ?? "";
    const claim = returned(
      name,
      "claim",
      () => http.claim({ path, tenants, methods }, codecs),
      isClaim,
      'the addresses that it claims, such as { paths: [{ path: "/own" }] }',
    );
    checkNotEmpty(base, name, claim);
    return [{ ...claim, by: name, http }];
  });
  return { ...base, claims, paths: pathsOf(base, claims, codecs) };
}

/** Whether a value is a claim. `checkClaimed` checks the paths themselves. */
function isClaim(value: unknown): boolean {
  if (!isObject(value)) return false;
  const { paths = [], beside = [] } = value;
  return (
    Array.isArray(paths) &&
    paths.every(isObject) &&
    Array.isArray(beside) &&
    ["owns", "reserves"].every((name) => value[name] === undefined || hasFunction(value, name))
  );
}

/** Rejects a binding that does not claim the path on its cards, because every call to that path would get a 404. */
function checkNotEmpty({ mounts }: MountedBase, name: string, { paths = [], below, beside = [] }: HttpClaim): void {
  if (below !== undefined || paths.length + beside.length > 0) return;
  const isOn = ({ card: { supportedInterfaces } }: ServiceMount): boolean =>
    supportedInterfaces.some(({ protocolBinding }) => protocolBinding === name);
  if (!mounts.some(isOn)) return;
  const description = 'claim() is empty, but a card names this binding. Claim its path: { paths: [{ path: "/own" }] }';
  throw cannotServe(name, description, `${name}: ${description}`);
}

function pathsOf({ path: base, mounts }: MountedBase, claims: readonly Claim[], codecs: readonly Codec[]) {
  const paths = new Map<string, string>();
  const claim = (field: string, at: string, by: string): void => {
    const other = paths.get(at) ?? ownerOf(claims, at, by);
    if (other !== undefined) throw sharedAddress(field, base + at, by, other);
    paths.set(at, by);
  };
  for (const { by, below, paths: own = [] } of claims) {
    if (below !== undefined) checkClaimed(by, below);
    for (const { path } of own) {
      checkClaimed(by, path);
      claim(`interfaces.${by}`, path, by);
    }
  }
  for (const { tenant, cardPaths = [] } of mounts) {
    for (const at of cardPathsOf(tenant, codecs)) claim("interfaces", at, card);
    for (const at of cardPaths) {
      checkPath("cardPaths", at);
      claim("cardPaths", at, card);
    }
  }
  for (const one of claims) checkBelow(base, one, claims);
  return paths;
}

function sharedAddress(field: string, path: string, one: string, other: string): A2AError {
  const sentence = `${one} and ${other} both have the address ${shown(path)}. Give one of them another path`;
  return cannotServe(field, sentence, `${field}: ${sentence}`);
}

/** The other binding that claims a path. */
function ownerOf(claims: readonly Claim[], at: string, by: string): string | undefined {
  return claims.find((claim) => claim.by !== by && claim.owns !== undefined && owns(claim, at))?.by;
}

/** Whether a claim includes a path. */
export function owns({ below, owns: found }: Pick<HttpClaim, "below" | "owns">, at: string): boolean {
  return below !== undefined && pathBelow(at, below) !== undefined && (found === undefined || found(at));
}

/** Rejects two claims for all paths below the same path, and overlapping claims below different paths. */
function checkBelow(base: string, { by, below }: Claim, claims: readonly Claim[]): void {
  if (below === undefined) return;
  for (const other of claims) {
    if (other.by === by || other.below === undefined || pathBelow(below, other.below) === undefined) continue;
    if (below !== other.below && !reserves(other, below)) continue;
    throw sharedAddress(`interfaces.${by}`, base + below, by, other.by);
  }
}

/** Whether a claim needs any path at or below the given path. */
function reserves({ below, reserves: taken }: HttpClaim, at: string): boolean {
  if (below === undefined) return false;
  if (taken !== undefined) return taken(at);
  return pathBelow(at, below) !== undefined || pathBelow(below, at) !== undefined;
}

/** Rejects a base at a path that an outer base claims. Throws `InvalidParams`, which names the option. */
export function checkNesting(bases: ReadonlyMap<string, ClaimedBase>): void {
  for (const path of bases.keys()) {
    for (const [above, inner] of pathsAbove(path)) {
      const outer = bases.get(above);
      if (inner === "" || outer === undefined || !isTaken(outer, inner)) continue;
      const conflict = `conflicts with an address of the agent at ${shown(above)}`;
      throw cannotServe("path", `${path} ${conflict}. Choose another path`);
    }
  }
}

function isTaken({ claims, paths }: ClaimedBase, inner: string): boolean {
  if (inner.startsWith("/.well-known")) return true;
  for (const [at, by] of paths) {
    if (at === "") continue;
    if (pathBelow(at, inner) !== undefined || (by !== card && pathBelow(inner, at) !== undefined)) return true;
  }
  return claims.some((claim) => reserves(claim, inner));
}

/** Rejects a document of the server at a path of an agent. Throws `InvalidParams`, which names the option. */
export function checkDocuments(
  documents: readonly Pick<PublicDocument, "name" | "path">[],
  bases: ReadonlyMap<string, ClaimedBase>,
): void {
  const names = new Map(documents.map(({ name, path }) => [path, name]));
  for (const base of bases.keys()) {
    for (const [path] of pathsAbove(base)) {
      const name = names.get(path);
      if (name !== undefined) throw sharedAddress("path", path, name, "an agent");
    }
  }
  for (const [path, name] of names) {
    for (const [above, inner] of pathsAbove(path)) {
      const base = bases.get(above);
      const other = base && (base.paths.get(inner) ?? ownerOf(base.claims, inner, name));
      if (other !== undefined) throw sharedAddress("interfaces", path, name, other);
    }
  }
}

/**
 * Rejects routes of the application at or above a path of an agent or the server, at each other's paths, and at `/.well-known`.
 *
 * @param routes - Paths of the routes on the host. Each route has everything below its path.
 * @param documents - Paths of the server's documents.
 * @throws A2AError `InvalidParams`, which names the option.
 */
export function checkRoutes(
  routes: ReadonlySet<string>,
  bases: ReadonlyMap<string, ClaimedBase>,
  documents: readonly string[],
): void {
  const refused = (path: string, reason: string): A2AError =>
    cannotServe("routes", `has the path ${path}, which ${reason}. Choose another path`);
  for (const own of routes) {
    checkPath("routes", own);
    if (own === "" || /\/\.well-known(?:\/|$)/.test(own)) throw refused(shown(own), "belongs to the server");
    for (const [above, inner] of pathsAbove(own)) {
      const base = bases.get(above);
      if (inner !== "" && base !== undefined && isTaken(base, inner)) {
        throw refused(own, `is an address of the agent at ${shown(above)}`);
      }
    }
  }
  for (const [what, paths] of [["an agent", bases.keys()] as const, ["the server", documents] as const]) {
    for (const path of paths) {
      for (const [own] of pathsAbove(path))
        if (routes.has(own)) throw refused(own, `has an address of ${what} at ${path}`);
    }
  }
}

/** Non-empty segments, each after a slash. */
const pathPattern = /^(?:\/[\w\-.~!$&'()*+,;=:@%]+)*$/;

function checkPath(field: string, path: string): void {
  if (pathPattern.test(path) && !dotSegment.test(path.replaceAll(/%2e/gi, "."))) return;
  throw cannotServe(field, notPath(path), `${field}: ${notPath(path)}`);
}

/** Rejects a path that no request can have. A tenant in the path may have characters that are not allowed in an option's path. */
function checkClaimed(by: string, path: unknown): void {
  if (path === "" || (typeof path === "string" && /^\/.*[^/]$/.test(path) && !dotSegment.test(path))) return;
  throw cannotServe(by, notPath(path), `${by}: ${notPath(path)}`);
}

const dotSegment = /\/\.\.?(?:\/|$)/;

function notPath(path: unknown): string {
  const rule = 'A path begins with a slash and does not end with one, such as "/weather"';
  return `${JSON.stringify(path)} is not a valid path. ${rule}`;
}

const noTenant: readonly string[] = [".well-known", ".", "..", ""];

/** Rejects invalid paths and tenants, and two mounts with the same path and tenant. Throws `InvalidParams`, which names the option. */
export function checkMounts(mounts: readonly ServiceMount[]): void {
  const taken = new Set<string>();
  for (const { path, tenant } of mounts) {
    checkPath("path", path);
    if (tenant !== undefined && noTenant.includes(tenant)) {
      throw cannotServe(
        "tenant",
        `cannot be ${JSON.stringify(tenant)}, which has a special meaning in a URL. Choose another tenant`,
      );
    }
    const key = JSON.stringify([path, tenant]);
    if (taken.has(key)) {
      const name = tenant === undefined ? "" : ` and the tenant ${JSON.stringify(tenant)}`;
      const sentence = `two agents have the path ${shown(path)}${name}. Give each agent its own path or tenant`;
      throw cannotServe("path", sentence, sentence);
    }
    taken.add(key);
  }
}

/** Rejects `interfaces` with an invalid path or an unknown binding, and agents at one base with different `interfaces`. */
function checkInterfaces({ path, mounts }: MountedBase, names: readonly string[]): void {
  const [first, ...others] = mounts;
  for (const [name, at] of Object.entries(first?.interfaces ?? {})) {
    if (!names.includes(name)) {
      const served = `The bindings of this server are ${names.join(", ")}`;
      throw cannotServe(
        "interfaces",
        `has a path for the binding ${JSON.stringify(name)}, which is not served. ${served}`,
      );
    }
    checkPath(`interfaces.${name}`, at);
  }
  for (const { interfaces = {} } of others) {
    const keys = new Set([...Object.keys(interfaces), ...Object.keys(first?.interfaces ?? {})]);
    if ([...keys].every((name) => (interfaces[name] ?? "") === (first?.interfaces?.[name] ?? ""))) continue;
    throw cannotServe("interfaces", `must be the same for all agents with the path ${shown(path)}`);
  }
}

/** A path of the host, for an error message. */
function shown(path: string): string {
  return path === "" ? "/" : path;
}
