import type { Responder } from "./http.ts";
import { Http1Exchange } from "./http1.ts";
import { Http2Exchange } from "./http2.ts";
import type { Port, PortHandlers } from "./port.ts";
import type { Upgrades } from "./upgrade.ts";

/** Has the requests of a port answered, over whichever version of HTTP they come, and its connections upgraded. */
export function dispatch(port: Port, responder: Responder, upgrades?: Upgrades): PortHandlers {
  return {
    http1(incoming, response, asksFirst) {
      port.connections.owe(response);
      void responder.answer(new Http1Exchange(incoming, response, incoming.url, asksFirst));
    },
    http2(stream, headers) {
      // A stream that nobody listens to ends the process with its errors; that its peer is gone is told by `aborted`.
      stream.on("error", ignore);
      void responder.answer(new Http2Exchange(stream, headers));
    },
    ...(upgrades?.possible === true && { upgrades }),
  };
}

function ignore(): void {}
