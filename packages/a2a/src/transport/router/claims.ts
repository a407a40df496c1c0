import type { A2AError } from "../../model/index.ts";
import type { Codec } from "../../wire/codec.ts";
import { cardPathsOf } from "../discovery/handler.ts";
import type { HttpBinding, HttpClaim, ServerBinding } from "../server/binding.ts";
import { pathBelow } from "../server/paths.ts";
import { cannotServe } from "../server/refuse.ts";
import { checkInterfaces, checkPath, shown } from "./check-mounts.ts";
import type { MountedBase } from "./mounts.ts";

/** What a binding claims of a base. */
export interface Claim extends HttpClaim {
  /** Its name. */
  readonly by: string;
  readonly http: HttpBinding;
}

/** A base, and whose its addresses are. */
export interface ClaimedBase extends MountedBase {
  readonly claims: readonly Claim[];
  /** By path below the base: who is found there, a card or the binding of that name. */
  readonly paths: ReadonlyMap<string, string>;
}

const card = "a card";

/**
 * Asks the bindings for their addresses below a base.
 *
 * @throws A2AError `InvalidParams` where one address would be that of two.
 */
export function claimsOf(base: MountedBase, bindings: readonly ServerBinding[], codecs: readonly Codec[]): ClaimedBase {
  checkInterfaces(
    base,
    bindings.map(({ name }) => name),
  );
  const tenants = base.mounts.map(({ tenant }) => tenant);
  const claims = bindings.flatMap(({ name, http }): readonly Claim[] => {
    if (http === undefined) return [];
    const path = base.mounts[0]?.interfaces?.[name] ?? "";
    return [{ ...http.claim({ path, tenants }, codecs), by: name, http }];
  });
  return { ...base, claims, paths: pathsOf(base, claims, codecs) };
}

function pathsOf({ path: base, mounts }: MountedBase, claims: readonly Claim[], codecs: readonly Codec[]) {
  const paths = new Map<string, string>();
  const claim = (field: string, at: string, by: string): void => {
    const other = paths.get(at) ?? ownerOf(claims, at, by);
    if (other !== undefined) throw sharedAddress(field, base + at, by, other);
    paths.set(at, by);
  };
  for (const { by, paths: own = [] } of claims) for (const { path } of own) claim(`interfaces.${by}`, path, by);
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
  const sentence = `${shown(path)} would be the address of ${one} and of ${other}`;
  return cannotServe(field, sentence, sentence);
}

/** Who else finds something at a path. */
function ownerOf(claims: readonly Claim[], at: string, by: string): string | undefined {
  return claims.find((claim) => claim.by !== by && claim.owns !== undefined && owns(claim, at))?.by;
}

export function owns({ below, owns: found }: Pick<HttpClaim, "below" | "owns">, at: string): boolean {
  return below !== undefined && pathBelow(at, below) !== undefined && (found === undefined || found(at));
}

/** Two bindings cannot have everything below one path, nor one what another finds below its own. */
function checkBelow(base: string, { by, below }: Claim, claims: readonly Claim[]): void {
  if (below === undefined) return;
  for (const other of claims) {
    if (other.by === by || other.below === undefined || pathBelow(below, other.below) === undefined) continue;
    if (below !== other.below && !reserves(other, below)) continue;
    throw sharedAddress(`interfaces.${by}`, base + below, by, other.by);
  }
}

/** Whether something would be lost of what a binding claims if another one had all at and below a path. */
function reserves({ below, reserves: taken }: HttpClaim, at: string): boolean {
  if (below === undefined) return false;
  if (taken !== undefined) return taken(at);
  return pathBelow(at, below) !== undefined || pathBelow(below, at) !== undefined;
}

/**
 * Refuses a base that begins where something of a base above it is found.
 *
 * @throws A2AError `InvalidParams`
 */
export function checkNesting(bases: readonly ClaimedBase[]): void {
  for (const { path } of bases) {
    for (const outer of bases) {
      const inner = path === outer.path ? undefined : pathBelow(path, outer.path);
      if (inner === undefined || !isTaken(outer, inner)) continue;
      const sentence = `${path} is an address of the agent at ${shown(outer.path)}`;
      throw cannotServe("path", sentence, sentence);
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
