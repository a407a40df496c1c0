import type { AgentCard } from "../../model/index.ts";
import type { JsonRpcClientCodec } from "../bindings.ts";
import { decodeCard, decodeEvent, decodeResponse } from "./decode.ts";
import { encodeRequest } from "./encode.ts";
import { decodeJsonRpcError } from "../errors.ts";

/** What a client of A2A 1.0 needs that speaks JSON-RPC alone: the rest of the codec would double its size. */
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
