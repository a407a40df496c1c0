import { checkHandlerOptions, type HandlerOptions } from "@parley/server/internal/handler";
import { checkOptions } from "@parley/a2a/internal/model/index";
import type { GrpcServing, ServeOptions } from "./serve-options.ts";

/* The names of the options of `serve`, for callers without types. */

/** Those that the handler does not have. */
type Own = Exclude<keyof ServeOptions, keyof HandlerOptions>;

const own: Readonly<Record<Own, 1>> = {
  developmentKey: 1,
  drainDelay: 1,
  grace: 1,
  grpc: 1,
  host: 1,
  hsts: 1,
  insecure: 1,
  logLevel: 1,
  port: 1,
  processes: 1,
  signals: 1,
  stallTimeout: 1,
  tls: 1,
  trustProxy: 1,
};

const ofGrpc = { port: 1, url: 1 } satisfies Record<keyof GrpcServing, 1>;

/** Refuses options that `serve` does not have, and names the one that was probably meant. */
export function checkServeOptions(options: ServeOptions): void {
  checkHandlerOptions("serve()", options, own);
  if (typeof options.grpc === "object" && options.grpc !== null) checkOptions("grpc", options.grpc, ofGrpc);
}

/** The options that the handler has, too. */
export function forHandler<Options extends object>(options: Options): Omit<Options, Own> {
  return Object.fromEntries(Object.entries(options).filter(([name]) => !Object.hasOwn(own, name))) as Omit<
    Options,
    Own
  >;
}
