/** A copy for a hook: what the hook does to it, and not to what it returns, is seen by nobody else. */
export function copyFor<T extends object>(value: T): T {
  try {
    return structuredClone(value);
  } catch {
    // What a program or an agent has made is no JSON, and fails when it is stored or sent.
    return value;
  }
}
