import type { AgentCard } from "../../model/index.ts";
import type { AgentService } from "../../protocol/index.ts";
import type { Codec } from "../../wire/codec.ts";
import type { InterfacePaths } from "../discovery/handler.ts";

/** A service at an address. */
export interface ServiceMount {
  /** Path of its base on the host: empty, or with a leading slash and none at the end. */
  readonly path: string;
  readonly tenant?: string;
  /** Where its bindings are below that. All that share a base share these. */
  readonly interfaces?: InterfacePaths;
  /** Further paths below the base that its card is found at. */
  readonly cardPaths?: readonly string[];
  readonly service: AgentService;
  readonly card: AgentCard;
}

/** Where the bindings of a mount are below its base. */
export function pathsOf(mount: ServiceMount | undefined): Required<InterfacePaths> {
  return { jsonrpc: mount?.interfaces?.jsonrpc ?? "", rest: mount?.interfaces?.rest ?? "" };
}

export function tenantPath(path: string, tenant: string): string {
  return `${path}/${encodeURIComponent(tenant)}`;
}

/** What comes after `outer` in a path that is below it. */
export function pathBelow(path: string, outer: string): string | undefined {
  return path === outer || path.startsWith(`${outer}/`) ? path.slice(outer.length) : undefined;
}

/** The tenants at a base that have one of their own, for versions whose requests cannot name them. */
export function tenantBases(
  here: readonly ServiceMount[],
  codecs: readonly Codec[],
): readonly (ServiceMount & { readonly tenant: string })[] {
  if (!codecs.some((codec) => codec.tenantInPath === true)) return [];
  return here.filter((mount): mount is ServiceMount & { readonly tenant: string } => mount.tenant !== undefined);
}
