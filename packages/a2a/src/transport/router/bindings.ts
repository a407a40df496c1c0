import { cannotServe, type ServerBinding } from "../server/binding.ts";

/** The bindings that A2A 1.0 names (§5.8). All others are named by a URI. */
const official: readonly string[] = ["JSONRPC", "HTTP+JSON", "GRPC"];

/**
 * Refuses bindings without a valid name of their own.
 *
 * @throws A2AError `InvalidParams`, with the option named.
 */
export function checkBindings(bindings: readonly ServerBinding[]): void {
  if (bindings.length === 0) throw cannotServe("bindings", "must have at least one binding, such as jsonRpcBinding()");
  const names = new Set<string>();
  for (const [index, binding] of bindings.entries()) {
    const field = `bindings[${index}]`;
    // JavaScript callers can pass anything.
    const name: unknown = (binding as Partial<ServerBinding> | undefined)?.name;
    if (typeof name !== "string" || typeof binding.interfaces !== "function") {
      throw cannotServe(field, "is not a binding. Pass a binding, as jsonRpcBinding() returns it");
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
