import { silentLogger } from "@parley/server";
import type { UniversalHandler } from "@parley/a2a/protocol";
import { dispatch, Responder, type HttpOptions } from "../../src/http/listener.ts";
import { Port, type PortOptions } from "../../src/http/port.ts";

export interface TestPort extends AsyncDisposable {
  readonly main: Port;
  readonly port: number;
  readonly origin: string;
}

export interface TestPortOptions extends PortOptions, HttpOptions {}

/** Serves a handler on a port for both versions of HTTP. The port and its connections are closed when the test ends. */
export async function openPort(handle: UniversalHandler, options: TestPortOptions = {}): Promise<TestPort> {
  const main = new Port(options);
  const port = await main.bind("127.0.0.1", 0);
  const responder = new Responder(handle, options, undefined, () => main.connections.last);
  const { logger = silentLogger } = options;
  main.answer(dispatch(main, responder), logger);
  return {
    main,
    port,
    origin: `${options.tls === undefined ? "http" : "https"}://127.0.0.1:${port}`,
    async [Symbol.asyncDispose]() {
      main.drain();
      await main.end(0);
    },
  };
}
