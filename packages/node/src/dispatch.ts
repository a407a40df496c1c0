import type { Logger } from "@parley/a2a";
import { mayBeGrpc, type GrpcHandler } from "./grpc.ts";
import type { Responder } from "./http.ts";
import { Http1Exchange } from "./http1.ts";
import { Http2Exchange } from "./http2.ts";
import type { Port, PortHandlers } from "./port.ts";

/** Whoever answers gRPC; it may have to be loaded first. */
export interface GrpcSource {
  handler(): GrpcHandler | Promise<GrpcHandler>;
}

/** Has gRPC answered by its own handler, and everything else by `responder`. */
export function dispatch(port: Port, responder: Responder, logger: Logger, grpc?: GrpcSource): PortHandlers {
  return {
    http1(incoming, response, asksFirst) {
      port.connections.owe(response);
      const exchange = new Http1Exchange(incoming, response, incoming.url, asksFirst);
      if (grpc === undefined || !mayBeGrpc(incoming.method, incoming.headers["content-type"])) {
        void responder.answer(exchange);
        return;
      }
      offer(
        grpc.handler(),
        (handler) => response.destroyed || handler.http1(incoming, response) || responder.answer(exchange),
        (cause) => {
          logger.error("A request could not be answered", { url: incoming.url, cause });
          response.destroy();
        },
      );
    },
    http2(stream, headers) {
      // A stream that nobody listens to ends the process with its errors; that its peer is gone is told by `aborted`.
      stream.on("error", ignore);
      if (grpc === undefined || !mayBeGrpc(headers[":method"], headers["content-type"])) {
        void responder.answer(new Http2Exchange(stream, headers));
        return;
      }
      offer(
        grpc.handler(),
        (handler) =>
          stream.destroyed || handler.http2(stream, headers) || responder.answer(new Http2Exchange(stream, headers)),
        (cause) => {
          logger.error("A request could not be answered", { url: headers[":path"], cause });
          stream.destroy(new Error("The request could not be answered", { cause }));
        },
      );
    },
  };
}

function offer(
  handler: GrpcHandler | Promise<GrpcHandler>,
  run: (handler: GrpcHandler) => unknown,
  fail: (cause: unknown) => void,
): void {
  if (handler instanceof Promise) {
    handler.then(run).catch(fail);
    return;
  }
  try {
    run(handler);
  } catch (cause) {
    fail(cause);
  }
}

function ignore(): void {}
