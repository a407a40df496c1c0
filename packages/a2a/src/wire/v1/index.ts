import {
  answered,
  checked,
  restRoutes,
  type JsonRpcClientCodec,
  type JsonRpcCodec,
  type RestCodec,
  type OwnShapes,
} from "../codec.ts";
import { isCoreName, type OperationName, type Operations } from "../../protocol/index.ts";
import {
  agentCardSchema,
  cancelTaskRequestSchema,
  deleteTaskPushNotificationConfigRequestSchema,
  emptySchema,
  getExtendedAgentCardRequestSchema,
  getTaskPushNotificationConfigRequestSchema,
  getTaskRequestSchema,
  listTaskPushNotificationConfigsRequestSchema,
  listTaskPushNotificationConfigsResponseSchema,
  listTasksRequestSchema,
  listTasksResponseSchema,
  sendMessageRequestSchema,
  sendMessageResponseSchema,
  streamResponseSchema,
  subscribeToTaskRequestSchema,
  taskPushNotificationConfigSchema,
  taskSchema,
  type AgentCard,
  type CheckMode,
  type Schema,
  type StreamResponse,
} from "../../model/index.ts";
import { decodeJsonRpcError, decodeRestError, encodeJsonRpcError, encodeRestError } from "../errors.ts";

/** Schemas of requests and responses, by operation. */
const schemas: {
  readonly [Name in OperationName]: readonly [
    Schema<Operations[Name]["request"]>,
    Schema<Operations[Name]["response"]>,
  ];
} = {
  SendMessage: [sendMessageRequestSchema, sendMessageResponseSchema],
  SendStreamingMessage: [sendMessageRequestSchema, streamResponseSchema],
  GetTask: [getTaskRequestSchema, taskSchema],
  ListTasks: [listTasksRequestSchema, listTasksResponseSchema],
  CancelTask: [cancelTaskRequestSchema, taskSchema],
  SubscribeToTask: [subscribeToTaskRequestSchema, streamResponseSchema],
  CreateTaskPushNotificationConfig: [taskPushNotificationConfigSchema, taskPushNotificationConfigSchema],
  GetTaskPushNotificationConfig: [getTaskPushNotificationConfigRequestSchema, taskPushNotificationConfigSchema],
  ListTaskPushNotificationConfigs: [
    listTaskPushNotificationConfigsRequestSchema,
    listTaskPushNotificationConfigsResponseSchema,
  ],
  DeleteTaskPushNotificationConfig: [deleteTaskPushNotificationConfigRequestSchema, emptySchema],
  GetExtendedAgentCard: [getExtendedAgentCardRequestSchema, agentCardSchema],
};

/** Checks the request of an operation. Throws `InvalidParams`. A request without parameters counts as an empty request. */
export function decodeRequest<Name extends OperationName>(
  operation: Name,
  value: unknown,
  mode: CheckMode,
): Operations[Name]["request"] {
  return checked(schemas[operation][0], value ?? {}, mode);
}

/** The request to send, without unknown members, which some servers reject. Throws `InvalidParams` for an invalid request. */
export function encodeRequest<Name extends OperationName>(
  operation: Name,
  request: Operations[Name]["request"],
): Operations[Name]["request"] {
  return decodeRequest(operation, request, "copy");
}

export function decodeResponse<Name extends OperationName>(
  operation: Name,
  value: unknown,
): Operations[Name]["response"] {
  // Some servers answer a deletion with `null`, or with nothing.
  const answer = operation === "DeleteTaskPushNotificationConfig" ? (value ?? {}) : value;
  return answered(schemas[operation][1], answer, "answer");
}

export function decodeEvent(value: unknown): StreamResponse {
  return answered(streamResponseSchema, value, "event");
}

export function decodeCard(value: unknown): AgentCard {
  return answered(agentCardSchema, value, "agent card");
}

/** A2A 1.0 on the wire is ProtoJSON (§5.5), the same over every binding and in the model, so responses and events are sent unchanged. */
const shapes: OwnShapes = {
  decodeRequest: (operation, value) => decodeRequest(operation, value, "request"),
  encodeRequest,
  responseOf: (_operation, { payload }) => payload.read(),
  encodeResponse: (_operation, { payload }) => payload.json,
  responsePieces: (_operation, { payload }) => payload.pieces,
  decodeResponse,
  eventOf: ({ payload }) => payload.read(),
  encodeEvent: ({ payload }) => payload.json,
  eventPieces: ({ payload }) => payload.pieces,
  decodeEvent,
  encodeError: encodeRestError,
  decodeError: decodeRestError,
};

/** The codec of A2A 1.0. The call is marked as pure, so that bundlers can remove an unused codec. */
export const codecV1: JsonRpcCodec & RestCodec = /* @__PURE__ */ makeCodec();

function makeCodec(): JsonRpcCodec & RestCodec {
  return {
    version: "1.0",
    shapes,
    webhook: { mediaType: "application/a2a+json", sends: "event", extensions: "a2a-extensions" },
    bindings: {
      JSONRPC: {
        ...shapes,
        // Methods have the names of the operations (§5.3).
        operation: (method) => (isCoreName(method) ? method : undefined),
        method: (operation) => operation,
        encodeError: encodeJsonRpcError,
        decodeError: decodeJsonRpcError,
      },
      "HTTP+JSON": {
        ...shapes,
        routes: restRoutes(
          "",
          "/extendedAgentCard",
          { statusTimestampAfter: "string" },
          { pageSize: "integer", pageToken: "string" },
        ),
        mediaType: "application/a2a+json",
      },
    },
    encodeCard: (card) => card,
    decodeCard,
  };
}

/** The part of A2A 1.0 that a client over JSON-RPC needs. The whole codec would double the size of its bundle. */
export const jsonRpcClientV1: JsonRpcClientCodec & { readonly decodeCard: (value: unknown) => AgentCard } = {
  version: "1.0",
  bindings: {
    JSONRPC: {
      method: (operation) => operation,
      encodeRequest,
      decodeResponse,
      decodeEvent,
      decodeError: decodeJsonRpcError,
    },
  },
  decodeCard,
};
