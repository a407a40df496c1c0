import type { AgentCard } from "../../model/index.ts";
import type { AgentService } from "../../protocol/index.ts";

/**
 * Paths of bindings below the base of an agent, by the names that the bindings have on cards: `{ JSONRPC: "/jsonrpc" }`. With a
 * leading slash; `""`: the base itself, which is the default.
 */
export type InterfacePaths = Readonly<Record<string, string>>;

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

/** The services at one base. */
export interface MountedBase {
  readonly path: string;
  readonly mounts: readonly ServiceMount[];
}

/** The mounts by their bases. */
export function basesOf(mounts: readonly ServiceMount[]): readonly MountedBase[] {
  const paths = [...new Set(mounts.map(({ path }) => path))];
  return paths.map((path) => ({ path, mounts: mounts.filter((mount) => mount.path === path) }));
}
