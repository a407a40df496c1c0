import type { ServerBinding } from "../server/binding.ts";
import { cannotServe } from "../server/refuse.ts";
import type { MountedBase, ServiceMount } from "./mounts.ts";

/** The bindings that A2A 1.0 names (§5.8): all others go by a URI. */
const official: readonly string[] = ["JSONRPC", "HTTP+JSON", "GRPC"];

/**
 * Refuses bindings that could not be told apart on a card.
 *
 * @throws A2AError `InvalidParams`, with the option named.
 */
export function checkBindings(bindings: readonly ServerBinding[]): void {
  if (bindings.length === 0) throw cannotServe("bindings", "must name one at least");
  const names = new Set<string>();
  for (const binding of bindings) {
    // The types forbid anything else; who writes JavaScript hears it here.
    const name: unknown = (binding as Partial<ServerBinding> | undefined)?.name;
    if (typeof name !== "string" || typeof binding.interfaces !== "function") {
      throw cannotServe("bindings", "has what is no binding: give what jsonRpcBinding() makes, or its like");
    }
    if (!official.includes(name) && !URL.canParse(name)) {
      const description = `${JSON.stringify(name)}: a binding is ${official.join(", ")} or goes by a URI (A2A 1.0 §5.8)`;
      throw cannotServe("bindings", `has one of the name ${description}`);
    }
    if (names.has(name)) throw cannotServe("bindings", `has two of the name ${JSON.stringify(name)}`);
    names.add(name);
  }
}

/** Segments, each after a slash and none empty. */
const pathPattern = /^(?:\/[\w\-.~!$&'()*+,;=:@%]+)*$/;

export function checkPath(field: string, path: string): void {
  if (pathPattern.test(path) && !path.split("/").some((segment) => segment === "." || segment === "..")) return;
  throw cannotServe(field, `${JSON.stringify(path)} is no path such as "/weather"`);
}

const noTenant: readonly string[] = [".well-known", ".", "..", ""];

/**
 * Refuses mounts that are no addresses, and two of one address.
 *
 * @throws A2AError `InvalidParams`, with the option named.
 */
export function checkMounts(mounts: readonly ServiceMount[]): void {
  const taken = new Set<string>();
  for (const { path, tenant } of mounts) {
    checkPath("path", path);
    if (tenant !== undefined && noTenant.includes(tenant)) {
      throw cannotServe("tenant", `${JSON.stringify(tenant)} cannot be told from a path of the protocol`);
    }
    const key = JSON.stringify([path, tenant]);
    if (taken.has(key)) {
      const name = tenant === undefined ? "" : ` under the tenant ${JSON.stringify(tenant)}`;
      throw cannotServe("path", `has two agents at ${shown(path)}${name}`);
    }
    taken.add(key);
  }
}

/** Refuses paths of bindings that are none, or of bindings that are not served, and those that the agents of a base do not share. */
export function checkInterfaces({ path, mounts }: MountedBase, names: readonly string[]): void {
  const [first, ...others] = mounts;
  for (const [name, at] of Object.entries(first?.interfaces ?? {})) {
    if (!names.includes(name)) {
      throw cannotServe("interfaces", `has ${JSON.stringify(name)}, and the bindings here are ${names.join(", ")}`);
    }
    checkPath(`interfaces.${name}`, at);
  }
  for (const { interfaces = {} } of others) {
    const keys = new Set([...Object.keys(interfaces), ...Object.keys(first?.interfaces ?? {})]);
    if ([...keys].every((name) => (interfaces[name] ?? "") === (first?.interfaces?.[name] ?? ""))) continue;
    const sentence = `the agents at ${shown(path)} have to have their interfaces at the same paths`;
    throw cannotServe("interfaces", sentence, sentence);
  }
}

/** A path below a host, as a sentence names it. */
export function shown(path: string): string {
  return path === "" ? "/" : path;
}
