import { isObject } from "../../model/schema.ts";
import type { CoreName, OperationName } from "../../protocol/index.ts";
import {
  restRoutes,
  type GrpcCodec,
  type JsonRpcCodec,
  type OwnShapes,
  type RestCodec,
  type Shapes,
} from "../codec.ts";
import { adapt, adaptClient } from "./adapt.ts";
import { decodeCard, encodeCard } from "./cards.ts";
import { fromEvent, jsonRpcShapes } from "./json-rpc.ts";
import type { Json } from "./messages.ts";
import { grpcShapes, restShapes } from "./proto.ts";
import { A2AError, wireErrors, type WireErrorCode } from "../../model/index.ts";
import { decodeJsonRpcError, decodeRestError as decodeDetailed, isShared, restErrorOf, wireCode } from "../errors.ts";

/** Methods of JSON-RPC (0.3 §3.5.6). JSON-RPC has no `tasks/list`; the other bindings have it. */
const methods: Readonly<Record<CoreName, string>> = {
  SendMessage: "message/send",
  SendStreamingMessage: "message/stream",
  GetTask: "tasks/get",
  ListTasks: "tasks/list",
  CancelTask: "tasks/cancel",
  SubscribeToTask: "tasks/resubscribe",
  CreateTaskPushNotificationConfig: "tasks/pushNotificationConfig/set",
  GetTaskPushNotificationConfig: "tasks/pushNotificationConfig/get",
  ListTaskPushNotificationConfigs: "tasks/pushNotificationConfig/list",
  DeleteTaskPushNotificationConfig: "tasks/pushNotificationConfig/delete",
  GetExtendedAgentCard: "agent/getAuthenticatedExtendedCard",
};

/** The path of the extended card for clients of 0.2, which has no method to read that card (0.2.5 §7.10). */
const extendedCardPath = "/agent/authenticatedExtendedCard";

/**
 * REST in the JSON of the specification's text (0.3 §6, §7.1, §7.2), which is the form of JSON-RPC in a member named by its kind. SDKs of 0.3 send
 * ProtoJSON instead. The format of a request's body determines the format of its answer; requests without a body get ProtoJSON.
 */
const textShapes: Pick<Shapes, "decodeRequest" | "responseOf" | "encodeResponse" | "eventOf" | "encodeEvent"> = {
  decodeRequest: (operation, value) =>
    jsonRpcShapes.decodeRequest(operation, operation === "CreateTaskPushNotificationConfig" ? configIn(value) : value),
  responseOf: (operation, reply) => wrapped(jsonRpcShapes.responseOf(operation, reply)),
  encodeResponse: (operation, reply) => JSON.stringify(wrapped(jsonRpcShapes.responseOf(operation, reply))),
  eventOf: ({ payload }) => wrapped(fromEvent(payload.read())),
  encodeEvent: ({ payload }) => JSON.stringify(wrapped(fromEvent(payload.read()))),
};

/** The shapes of a request in the JSON of the specification's text; `undefined` for ProtoJSON. */
function textShapesOf(operation: OperationName, value: unknown): typeof textShapes | undefined {
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

/** In ProtoJSON, a message of 0.3 has `content` instead of `parts`, no `kind`, and roles in capitals. */
function isText(message: unknown): boolean {
  if (!isObject(message) || "content" in message) return false;
  return "parts" in message || "kind" in message || message["role"] === "user" || message["role"] === "agent";
}

/** The config of a request. The path also names the task (0.3 §7.5), and takes precedence. */
function configIn(value: unknown): unknown {
  const { taskId, config }: Json = isObject(value) ? value : {};
  return isObject(config) ? { ...config, taskId } : { taskId };
}

const memberOfKind: Readonly<Record<string, string>> = {
  task: "task",
  message: "message",
  "status-update": "statusUpdate",
  "artifact-update": "artifactUpdate",
};

/** An event in a member named by its kind. Other results, which have no kind, stay unchanged. */
function wrapped(result: unknown): unknown {
  const { kind }: Json = isObject(result) ? result : {};
  return typeof kind === "string" ? { [memberOfKind[kind] ?? kind]: result } : result;
}

/** The codec of A2A 0.3. Also reads 0.2.5, whose JSON-RPC is the same. */
export const codecV03: JsonRpcCodec & RestCodec & GrpcCodec = /* @__PURE__ */ makeCodec();

function makeCodec(): JsonRpcCodec & RestCodec & GrpcCodec {
  const operations = new Map(Object.entries(methods).map(([operation, method]) => [method, operation as CoreName]));
  operations.delete(methods.ListTasks);
  const errors = { encodeError: encodeRestError, decodeError: decodeRestError };
  /** The shapes of JSON-RPC with the errors of REST, for bindings that 0.3 does not define. */
  const shapes: OwnShapes = { ...jsonRpcShapes, ...errors };
  return {
    version: "0.3",
    aliases: ["0.2"],
    tenantInPath: true,
    cardPaths: ["/.well-known/agent.json"],
    extensionsHeader: "x-a2a-extensions",
    extendedCardPath,
    webhook: { mediaType: "application/json", sends: "task", extensions: "x-a2a-extensions" },
    shapes,
    bindings: {
      JSONRPC: {
        ...jsonRpcShapes,
        operation: (method) => operations.get(method),
        method: (operation) => methods[operation as CoreName],
        encodeError: encodeJsonRpcError,
        decodeError: decodeJsonRpcError,
      },
      "HTTP+JSON": {
        ...restShapes,
        ...errors,
        // The annotation of the proto has `task` instead of `tasks` for creating a webhook. No implementation follows it.
        routes: restRoutes("/v1", "/card"),
        elsewhere: [{ operation: "GetExtendedAgentCard", methods: ["GET"], path: extendedCardPath, body: false }],
        mediaType: "application/json",
        otherShapes: textShapesOf,
        listsAreArrays: true,
      },
      GRPC: {
        ...grpcShapes,
        ...errors,
        // The specification does not define these statuses, but all SDKs of 0.3 send and read them.
        statuses: { PushNotificationNotSupported: "UNIMPLEMENTED", UnsupportedOperation: "UNIMPLEMENTED" },
      },
    },
    encodeCard,
    decodeCard,
    adapt,
    adaptClient,
  };
}

/**
 * An error of JSON-RPC (0.3 §8), without `data`, because the Go SDKs fail unless `data` is an object (0.3) or a list (2.x). The message
 * names the wrong field.
 */
function encodeJsonRpcError(error: A2AError): unknown {
  return { code: jsonRpcCodeOf(error), message: error.message };
}

/** An error of REST, with the body of 1.0, the code and message that the JavaScript SDK reads, and the type that the Python SDK 1.x reads. */
function encodeRestError(error: A2AError): string {
  const code = wireCode(error.code);
  const type = isShared(code) ? { type: typeOf(code) } : {};
  return JSON.stringify({ code: jsonRpcCodeOf(error), message: error.message, ...type, ...restErrorOf(error) });
}

function jsonRpcCodeOf(error: A2AError): number {
  return error.sentAs?.jsonrpc ?? wireErrors[wireCode(error.code)].jsonrpc;
}

function typeOf(code: WireErrorCode): string {
  if (code === "ParseError") return "JSONParseError";
  return code.endsWith("Error") ? code : `${code}Error`;
}

/** The codes of HTTP statuses in 0.3. If several errors have the same status, the message decides. */
const statuses: Readonly<Record<number, readonly (readonly [words: RegExp, code: WireErrorCode])[]>> = {
  404: [
    [/card/i, "ExtendedAgentCardNotConfigured"],
    [/method/i, "MethodNotFound"],
    [/(?:)/, "TaskNotFound"],
  ],
  409: [
    [/card/i, "ExtendedAgentCardNotConfigured"],
    [/(?:)/, "TaskNotCancelable"],
  ],
  415: [[/(?:)/, "ContentTypeNotSupported"]],
  422: [[/(?:)/, "InvalidParams"]],
  501: [
    [/push/i, "PushNotificationNotSupported"],
    [/(?:)/, "UnsupportedOperation"],
  ],
  502: [[/(?:)/, "InvalidAgentResponse"]],
};

/** The HTTP status for a gRPC status without details, which the JavaScript SDK sends. */
const named: Readonly<Record<string, number>> = { FAILED_PRECONDITION: 409, UNIMPLEMENTED: 501 };

/** An error of REST in any dialect of 0.3: `{code, message, data}`, `google.rpc.Status`, or a message alone under a status. */
function decodeRestError(status: number, body: unknown): A2AError {
  const plain = plainError(status, body);
  const code = statuses[plain?.status ?? 0]?.find(([words]) => words.test(plain?.message ?? ""))?.[1];
  return code === undefined ? decodeDetailed(status, body) : new A2AError(code, plain?.message);
}

/** The status and the message of an error without other members. */
function plainError(status: number, body: unknown): { readonly status: number; readonly message: string } | undefined {
  if (!isObject(body)) return undefined;
  if (typeof body["message"] === "string" && Object.keys(body).length === 1)
    return { status, message: body["message"] };
  const { error } = body;
  if (!isObject(error) || typeof error["status"] !== "string" || !isEmpty(error["details"])) return undefined;
  const http = named[error["status"]];
  return http === undefined ? undefined : { status: http, message: String(error["message"]) };
}

function isEmpty(details: unknown): boolean {
  return details === undefined || (Array.isArray(details) && details.length === 0);
}
