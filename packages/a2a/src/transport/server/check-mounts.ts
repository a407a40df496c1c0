import { invalidParams, type A2AError } from "../../model/index.ts";
import type { Codec } from "../../wire/codec.ts";
import { cardPathsOf } from "../discovery/handler.ts";
import { compileRoutes, firstSegments, matchRoute, wholeSegments } from "../rest/routes.ts";
import { pathBelow, pathsOf, tenantBases, tenantPath, type ServiceMount } from "./mounts.ts";

/** Segments, each after a slash and none empty. */
const pathPattern = /^(?:\/[\w\-.~!$&'()*+,;=:@%]+)*$/;

/**
 * Refuses mounts that are no addresses, and those whose addresses would be another's.
 *
 * @throws A2AError `InvalidParams`, with the option named.
 */
export function checkMounts(mounts: readonly ServiceMount[], codecs: readonly Codec[]): void {
  const never = [".well-known", ".", "..", ""];
  // One whose name stands before the paths of another version is served all the same (`/v1`).
  const noTenant = new Set([...never, ...codecs.flatMap((codec) => wholeSegments(codec.rest.routes))]);
  const taken = new Set<string>();
  for (const { path, tenant } of mounts) {
    checkPath("path", path);
    if (tenant !== undefined && noTenant.has(tenant)) {
      throw refuse("tenant", `${JSON.stringify(tenant)} cannot be told from a path of the protocol`);
    }
    const key = JSON.stringify([path, tenant]);
    if (taken.has(key)) {
      const name = tenant === undefined ? "" : ` under the tenant ${JSON.stringify(tenant)}`;
      throw refuse("path", `two agents at ${shown(path)}${name}`);
    }
    taken.add(key);
  }
  for (const path of new Set(mounts.map((mount) => mount.path))) {
    checkInterfaces(
      path,
      mounts.filter((mount) => mount.path === path),
      codecs,
    );
  }
  checkNesting(mounts, codecs);
}

function checkPath(field: string, path: string): void {
  if (pathPattern.test(path) && !path.split("/").some((segment) => segment === "." || segment === "..")) return;
  throw refuse(field, `${JSON.stringify(path)} is no path such as "/weather"`);
}

/** The bindings and the cards of one base: each path is the address of one of them. */
function checkInterfaces(path: string, here: readonly ServiceMount[], codecs: readonly Codec[]): void {
  const { jsonrpc, rest } = pathsOf(here[0]);
  checkPath("interfaces.jsonrpc", jsonrpc);
  checkPath("interfaces.rest", rest);
  if (here.some((mount) => pathsOf(mount).jsonrpc !== jsonrpc || pathsOf(mount).rest !== rest)) {
    throw refuse("interfaces", `the agents at ${shown(path)} have to have their interfaces at the same paths`);
  }
  const tables = codecs.map((codec) => compileRoutes(codec.rest.routes));
  const tenants = new Set(here.map(({ tenant }) => encodeURIComponent(tenant ?? "")));
  const isRest = (at: string): boolean => {
    const below = pathBelow(at, rest);
    if (below === undefined || below === "") return false;
    return tables.some((table) =>
      ["GET", "POST", "DELETE"].some((method) => {
        const match = matchRoute(table, method, below);
        return match !== undefined && (match.tenant === undefined || tenants.has(match.tenant));
      }),
    );
  };
  const claimed = new Map<string, string>();
  const claim = (field: string, at: string, what: string): void => {
    const other = claimed.get(at) ?? (isRest(at) ? "REST" : undefined);
    if (other !== undefined) throw refuse(field, `${shown(path + at)} would be the address of ${what} and of ${other}`);
    claimed.set(at, what);
  };
  const posted = [jsonrpc, ...tenantBases(here, codecs).map(({ tenant }) => tenantPath(jsonrpc, tenant))];
  for (const at of posted) claim("interfaces.jsonrpc", at, "JSON-RPC");
  for (const { tenant, cardPaths = [] } of here) {
    for (const at of cardPathsOf(tenant, codecs)) claim("interfaces", at, "a card");
    for (const at of cardPaths) {
      checkPath("cardPaths", at);
      claim("cardPaths", at, "a card");
    }
  }
}

/** One base below another must not be an address of that. */
function checkNesting(mounts: readonly ServiceMount[], codecs: readonly Codec[]): void {
  const noPath = new Set([".well-known", ...codecs.flatMap((codec) => firstSegments(codec.rest.routes))]);
  for (const { path } of mounts) {
    for (const outer of mounts) {
      const inner = path === outer.path ? undefined : pathBelow(path, outer.path);
      if (inner === undefined) continue;
      const { jsonrpc, rest } = pathsOf(outer);
      const tenant = encodeURIComponent(outer.tenant ?? "");
      const segment = pathBelow(inner, rest)?.split("/")[1];
      const isTaken =
        inner.startsWith("/.well-known") ||
        (segment !== undefined && (noPath.has(segment) || segment === tenant)) ||
        (jsonrpc !== "" && pathBelow(inner, jsonrpc) !== undefined) ||
        (rest !== "" && inner === rest) ||
        outer.cardPaths?.includes(inner) === true;
      if (isTaken) throw refuse("path", `${path} is an address of the agent at ${shown(outer.path)}`);
    }
  }
}

function shown(path: string): string {
  return path === "" ? "/" : path;
}

function refuse(field: string, description: string): A2AError {
  return invalidParams([{ field, description }], `This cannot be served: ${description}`);
}
