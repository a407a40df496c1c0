/**
 * gRPC and gRPC-Web at a server. Clients have `@parley/grpc/client` and, in a browser, `@parley/grpc/web`.
 * @packageDocumentation
 */

import type { CorsOptions } from "@parley/server/internal/handler";
import { withoutQuery } from "@parley/a2a/internal/base/index";
import type { UniversalRequest } from "@parley/a2a/internal/protocol/index";
import type { AnyPathBinding, AnyPathEndpoint, ServerHost } from "@parley/a2a/internal/transport/server/binding";
import { isPreflight } from "./metadata.ts";
import type { GrpcHandler } from "./server/handler.ts";

/** Options of gRPC at a server. */
export interface GrpcOptions {
  /** Address of gRPC in the card: `agents.example.com:443`. Default: host and port of the agent's own URL. */
  readonly url?: string;
  /** Origins of web pages that may use gRPC-Web; `true` allows all. Default: the `cors` of the server. */
  readonly cors?: CorsOptions | boolean;
  /** Timeout for receiving one message, in milliseconds. Default: 5 minutes. */
  readonly requestTimeout?: number;
}

/**
 * gRPC and gRPC-Web at a server (A2A 1.0 §10): `serve(agent, { bindings: [jsonRpcBinding(), restBinding(),
 * grpcBinding()] })`. Serves the versions 1.0 and 0.3, if the server speaks them, health checks and reflection.
 *
 * The first request loads the codecs.
 */
export function grpcBinding(options: GrpcOptions = {}): AnyPathBinding {
  return {
    name: "GRPC",
    interfaces({ url, label }, codec) {
      // A 0.3 call cannot name a tenant: it has neither a field nor a path for it.
      if (codec.tenantInPath === true && label !== undefined) return [];
      return [{ url: options.url ?? addressOf(url), ...(label !== undefined && { tenant: label }) }];
    },
    openAnyPath: (host) => new GrpcEndpoint(host, options),
  };
}

/** Host and port: gRPC addresses have no scheme. */
function addressOf(url: string): string {
  const { hostname, port, protocol } = new URL(url);
  return `${hostname}:${port === "" ? (protocol === "https:" ? 443 : 80) : port}`;
}

/** Paths of the services. The path is the only sign that a preflight request is for gRPC. */
const services =
  /^\/(?:lf\.a2a\.v1\.A2AService|a2a\.v1\.A2AService|grpc\.health\.v1\.Health|grpc\.reflection\.v1(?:alpha)?\.ServerReflection)\//;

/** Loads the handler with the first request, because loading takes longer than the rest of the server's start. */
class GrpcEndpoint implements AnyPathEndpoint {
  readonly #host: ServerHost;
  readonly #options: GrpcOptions;
  #handler: GrpcHandler | undefined;
  #loading: Promise<GrpcHandler> | undefined;

  constructor(host: ServerHost, options: GrpcOptions) {
    this.#host = host;
    this.#options = options;
  }

  claims(request: UniversalRequest): boolean {
    if (request.header("content-type")?.startsWith("application/grpc") === true) return true;
    return this.#cors !== false && isPreflight(request) && this.#serves(withoutQuery(request.url));
  }

  answer(request: UniversalRequest): ReturnType<GrpcHandler["answer"]> {
    if (this.#handler !== undefined) return this.#handler.answer(request);
    return (this.#loading ??= this.#load()).then((handler) => handler.answer(request));
  }

  #serves(path: string): boolean {
    return services.test(path) || this.#host.methods?.some(({ grpc }) => grpc === path) === true;
  }

  get #cors(): CorsOptions | boolean {
    return this.#options.cors ?? this.#host.cors ?? false;
  }

  async #load(): Promise<GrpcHandler> {
    const { grpcHandler } = await import("./server/handler.ts");
    return (this.#handler = grpcHandler(this.#host, { ...this.#options, cors: this.#cors }));
  }

  close(): void {
    this.#handler?.close();
  }
}
