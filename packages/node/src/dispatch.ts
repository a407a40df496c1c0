import type { Logger } from "@parley/a2a";
import { mayBeGrpc, type GrpcHandler } from "./grpc.ts";
import type { Responder } from "./http.ts";
import { Http1Exchange } from "./http1.ts";
import { Http2Exchange } from "./http2.ts";
import type { Port, PortHandlers } from "./port.ts";

/** Has gRPC answered by its own handler, and everything else by `responder`. */
export function dispatch(port: Port, responder: Responder, logger: Logger, grpc?: GrpcHandler): PortHandlers {
  return {
    http1(incoming, response, asksFirst) {
      port.connections.owe(response);
      if (grpc !== undefined && mayBeGrpc(incoming.method, incoming.headers["content-type"])) {
        try {
          if (grpc.http1(incoming, response)) return;
        } catch (cause) {
          logger.error("A request could not be answered", { url: incoming.url, cause });
          response.destroy();
          return;
        }
      }
      void responder.answer(new Http1Exchange(incoming, response, incoming.url, asksFirst));
    },
    http2(stream, headers) {
      // A stream that nobody listens to ends the process with its errors; that its peer is gone is told by `aborted`.
      stream.on("error", ignore);
      if (grpc !== undefined && mayBeGrpc(headers[":method"], headers["content-type"])) {
        try {
          if (grpc.http2(stream, headers)) return;
        } catch (cause) {
          logger.error("A request could not be answered", { url: headers[":path"], cause });
          stream.destroy(new Error("The request could not be answered", { cause }));
          return;
        }
      }
      void responder.answer(new Http2Exchange(stream, headers));
    },
  };
}

function ignore(): void {}
