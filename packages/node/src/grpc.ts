import type { IncomingMessage, ServerResponse } from "node:http";
import type { IncomingHttpHeaders, ServerHttp2Stream } from "node:http2";
import { createRequire } from "node:module";
import type { ServerHost } from "@parley/a2a/transport";
import type { GrpcOptions } from "@parley/grpc";
import { optional } from "./optional.ts";

/** Where gRPC is spoken, and what cards say of it. */
export interface GrpcServeOptions {
  /** What cards say: `agents.example.com:443`. Default: host and port of `publicUrl`, with the `port` from here if there is one. */
  readonly url?: string;
  /** A port for gRPC alone; 0 takes any free one. Default: that of everything else. */
  readonly port?: number;
}

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

export const grpcName = "@parley/grpc";

/**
 * Whether gRPC is to be spoken: where it is installed and not refused.
 *
 * @throws Error when it is asked for and cannot be.
 */
export async function speaksGrpc(option: GrpcServeOptions | false | undefined): Promise<boolean> {
  if (option === false) return false;
  if (option === undefined) return isInstalled();
  if ((await optional(grpcName, () => import("@parley/grpc"))) === undefined) {
    throw new Error(`To serve gRPC, install ${grpcName}`);
  }
  return true;
}

/** A look for the package: to load it would be a third of the start of a server that may never be asked for it. */
function isInstalled(): boolean {
  try {
    createRequire(import.meta.url).resolve(`${grpcName}/package.json`);
    return true;
  } catch {
    return false;
  }
}

/** The handler of `@parley/grpc`, made when the first request wants it. */
export class LazyGrpc {
  readonly #binding: ServerHost;
  readonly #options: GrpcOptions;
  #handler: GrpcHandler | undefined;
  #loading: Promise<GrpcHandler> | undefined;

  constructor(binding: ServerHost, options: GrpcOptions) {
    this.#binding = binding;
    this.#options = options;
  }

  /** At once, but for the first time. */
  handler(): GrpcHandler | Promise<GrpcHandler> {
    return this.#handler ?? (this.#loading ??= this.#load());
  }

  async #load(): Promise<GrpcHandler> {
    const { grpcHandler } = await import("@parley/grpc");
    return (this.#handler = grpcHandler(this.#binding, this.#options));
  }

  async close(): Promise<void> {
    await this.#handler?.close?.();
  }
}

/** Host and port, which is how gRPC names an address: without a scheme. */
export function grpcAddress(publicUrl: string, port: number | undefined): string {
  // What it is instead is said in the words of the handler.
  if (!URL.canParse(publicUrl)) return "";
  const { hostname, port: own, protocol } = new URL(publicUrl);
  return `${hostname}:${port ?? (own === "" ? (protocol === "https:" ? 443 : 80) : own)}`;
}
