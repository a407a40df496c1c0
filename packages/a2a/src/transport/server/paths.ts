import type { Codec } from "../../wire/codec.ts";
import type { AgentAddress, InterfaceAddress } from "./binding.ts";

/** What comes after `outer` in a path that is at or below it. */
export function pathBelow(path: string, outer: string): string | undefined {
  return path === outer || path.startsWith(`${outer}/`) ? path.slice(outer.length) : undefined;
}

/** The path of one tenant below that of all. */
export function tenantPath(path: string, tenant: string): string {
  return `${path}/${encodeURIComponent(tenant)}`;
}

/** Where an agent is found by a binding that has a URL: with its tenant in the request, or in the URL where that has no field for it. */
export function interfaceAt({ url, path, tenant }: AgentAddress, codec: Codec): InterfaceAddress {
  if (tenant === undefined) return { url: url + path };
  return codec.tenantInPath === true ? { url: tenantPath(url + path, tenant) } : { url: url + path, tenant };
}
