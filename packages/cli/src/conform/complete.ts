import type { Json, JsonMap } from "./format.ts";
import { isMap, member } from "./path.ts";

/**
 * What the runner adds to a request: a message has an id (ACTS §4.3). Files also write the ids of a message beside it, and
 * a webhook's configuration as an object of its own; neither is a field of A2A 1.0, and what they mean is clear.
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

/** The same for a body that a test wrote itself: the params of a JSON-RPC request, or the body of a REST one. */
export function completeBody(body: Json): Json {
  if (!isMap(body)) return body;
  const params = member(body, "params");
  return isMap(params) ? { ...body, params: completeParams(params) } : completeParams(body);
}
