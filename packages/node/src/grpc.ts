import type { IncomingMessage, ServerResponse } from "node:http";
import type { IncomingHttpHeaders, ServerHttp2Stream } from "node:http2";

/** What answers gRPC and gRPC-Web on a port that it shares with others. Each function says whether the request was its own. */
export interface GrpcHandler {
  http2(stream: ServerHttp2Stream, headers: IncomingHttpHeaders): boolean;
  http1(incoming: IncomingMessage, response: ServerResponse): boolean;
  /** Ends what is still open. */
  close?(): Promise<void>;
}

/**
 * Whether a request may be meant for gRPC: by its content type (`application/grpc`, `application/grpc-web+proto`, …), or as
 * the question of a browser before it (CORS), which has none.
 */
export function mayBeGrpc(method: string | undefined, contentType: string | undefined): boolean {
  return contentType?.startsWith("application/grpc") === true || method === "OPTIONS";
}
