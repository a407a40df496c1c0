import type { Json, JsonMap } from "./format.ts";
import { isMap, member } from "./path.ts";

/**
 * Completes the parameters of a request: a message gets an id where it has none (ACTS §4.3). Some files write ids beside the
 * message that they belong to, or the configuration of a webhook in an object of its own, which A2A 1.0 does not have. They are moved.
 */
export function completeParams(params: JsonMap): JsonMap {
  const { message, taskId, contextId, pushNotificationConfig, ...rest } = params;
  if (isMap(message)) {
    const ids = { ...(taskId === undefined ? {} : { taskId }), ...(contextId === undefined ? {} : { contextId }) };
    return { ...rest, message: { messageId: crypto.randomUUID(), ...message, ...ids } };
  }
  if (!isMap(pushNotificationConfig)) return params;
  return { ...rest, ...(taskId === undefined ? {} : { taskId }), ...pushNotificationConfig };
}

/** The same for a body that a test wrote itself: for the `params` of a JSON-RPC request, or for the body of a REST request. */
export function completeBody(body: Json): Json {
  if (!isMap(body)) return body;
  const params = member(body, "params");
  return isMap(params) ? { ...body, params: completeParams(params) } : completeParams(body);
}

/**
 * A request in the agent's own words: every text that begins with a behaviour's prefix (ACTS §11) gets the words that stand for
 * the prefix instead. Of several prefixes that fit, the longest counts.
 */
export function inWords(value: Json, behaviors: readonly string[], words: Readonly<Record<string, string>>): Json {
  if (typeof value === "string") {
    const [prefix] = behaviors.filter((one) => value.startsWith(one)).sort((a, b) => b.length - a.length);
    const own = prefix === undefined || !Object.hasOwn(words, prefix) ? undefined : words[prefix];
    return prefix === undefined || own === undefined ? value : own + value.slice(prefix.length);
  }
  if (Array.isArray(value)) return (value as readonly Json[]).map((one) => inWords(one, behaviors, words));
  if (!isMap(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, inWords(one, behaviors, words)]));
}
