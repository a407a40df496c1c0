import { isObject } from "../../model/schema.ts";
import type { OperationName, Operations, Reply, StreamItem } from "../../protocol/index.ts";
import type { Shapes } from "../codec.ts";
import { fromEvent } from "./conversion.ts";
import { restShapes } from "./proto-shapes.ts";
import { decodeRequest, responseOf } from "./shapes.ts";
import type { Event03 } from "./types.ts";

/**
 * REST in the JSON of the text (0.3 §6, §7): that of JSON-RPC, where §7.1 and §7.2 put a result into a member by its kind. The SDKs of
 * 0.3 send ProtoJSON. A request with a body tells which of them its client speaks, so it is read and answered in that one. What has no
 * body is answered in ProtoJSON.
 */
const textShapes: Shapes = {
  ...restShapes,
  decodeRequest<Name extends OperationName>(operation: Name, value: unknown): Operations[Name]["request"] {
    return decodeRequest(operation, operation === "CreateTaskPushNotificationConfig" ? configIn(value) : value);
  },
  responseOf: textOf,
  encodeResponse: (operation, reply) => JSON.stringify(textOf(operation, reply)),
  eventOf: (item) => wrapped(eventOf(item)),
  encodeEvent: (item) => JSON.stringify(wrapped(eventOf(item))),
};

/** The shapes of a request that is in the JSON of the text; `undefined` for ProtoJSON. */
export function textShapesOf(operation: OperationName, value: unknown): Shapes | undefined {
  if (!isObject(value)) return undefined;
  switch (operation) {
    case "SendMessage":
    case "SendStreamingMessage":
      return isText(value["message"]) ? textShapes : undefined;
    case "CreateTaskPushNotificationConfig":
      // In ProtoJSON a config has a resource name.
      return isObject(value["config"]) && "taskId" in value["config"] ? textShapes : undefined;
    default:
      return undefined;
  }
}

/** In ProtoJSON a message of 0.3 says `content`, has no `kind`, and its roles are in capitals. */
function isText(message: unknown): boolean {
  if (!isObject(message) || "content" in message) return false;
  return "parts" in message || "kind" in message || message["role"] === "user" || message["role"] === "agent";
}

/** The path names the task too (0.3 §7.5). It decides. */
function configIn(value: unknown): unknown {
  const { taskId, config } = value as { readonly taskId: unknown; readonly config: object };
  return { ...config, taskId };
}

function textOf<Name extends OperationName>(operation: Name, reply: Reply<Operations[Name]["response"]>): unknown {
  const result = responseOf(operation, reply);
  return operation === "SendMessage" ? wrapped(result as Event03) : result;
}

function eventOf({ payload }: StreamItem): Event03 {
  return fromEvent(payload.read());
}

function wrapped(event: Event03): object {
  switch (event.kind) {
    case "task":
      return { task: event };
    case "message":
      return { message: event };
    case "status-update":
      return { statusUpdate: event };
    case "artifact-update":
      return { artifactUpdate: event };
  }
}
