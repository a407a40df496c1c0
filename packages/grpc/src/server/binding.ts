import type { CorsOptions } from "@parley/a2a";
import type { UniversalRequest } from "@parley/a2a/protocol";
import type { AnyPathBinding, AnyPathEndpoint, ServerHost } from "@parley/a2a/transport";
import type { GrpcHandler } from "./handler.ts";
import { isPreflight } from "./preflight.ts";

/** Options of gRPC at a server. */
export interface GrpcOptions {
  /** Where clients reach gRPC, as cards say it: `agents.example.com:443`. Default: host and port of the agent's own address. */
  readonly url?: string;
  /** Which pages of other origins may call by gRPC-Web; `true`: any. Default: those of the server's own `cors`. */
  readonly cors?: CorsOptions | boolean;
  /** How long a message that has begun may take to come in whole, in milliseconds. Default 5 minutes. */
  readonly requestTimeout?: number;
}

/**
 * gRPC and gRPC-Web at a server (A2A 1.0 §10): `serve(agent, { bindings: [jsonRpcBinding(), restBinding(), grpcBinding()] })`.
 * The services of 1.0 and 0.3 as far as the server speaks these versions, beside them health checks and reflection.
 *
 * The codecs of its messages are loaded with the first request.
 */
export function grpcBinding(options: GrpcOptions = {}): AnyPathBinding {
  return {
    name: "GRPC",
    interfaces({ url, label }, codec) {
      // The service of 0.3 has no field for a tenant, and no path either.
      if (codec.tenantInPath === true && label !== undefined) return [];
      return [{ url: options.url ?? addressOf(url), ...(label !== undefined && { tenant: label }) }];
    },
    openAnyPath: (host) => new GrpcEndpoint(host, options),
  };
}

/** Host and port, which is how gRPC names an address: without a scheme. */
function addressOf(url: string): string {
  const { hostname, port, protocol } = new URL(url);
  return `${hostname}:${port === "" ? (protocol === "https:" ? 443 : 80) : port}`;
}

/** Names of the services that a browser may ask for before it calls: it says no content type then. */
const services =
  /^\/(?:lf\.a2a\.v1\.A2AService|a2a\.v1\.A2AService|grpc\.health\.v1\.Health|grpc\.reflection\.v1(?:alpha)?\.ServerReflection)\//;

/** Loads what answers when the first request comes: that takes longer than everything else that a server does before. */
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
    return this.#cors !== false && isPreflight(request) && services.test(request.url);
  }

  answer(request: UniversalRequest): ReturnType<GrpcHandler["answer"]> {
    if (this.#handler !== undefined) return this.#handler.answer(request);
    return (this.#loading ??= this.#load()).then((handler) => handler.answer(request));
  }

  get #cors(): CorsOptions | boolean {
    return this.#options.cors ?? this.#host.cors ?? false;
  }

  async #load(): Promise<GrpcHandler> {
    const { grpcHandler } = await import("./handler.ts");
    return (this.#handler = grpcHandler(this.#host, { ...this.#options, cors: this.#cors }));
  }

  close(): void {
    this.#handler?.close();
  }
}
