import type { IncomingMessage, ServerResponse } from "node:http";
import type { IncomingHttpHeaders, ServerHttp2Stream } from "node:http2";
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

/**
 * `@parley/grpc`, where it is installed and not refused.
 *
 * @throws Error when it is asked for and not there.
 */
export async function loadGrpc(
  option: GrpcServeOptions | false | undefined,
): Promise<typeof import("@parley/grpc") | undefined> {
  if (option === false) return undefined;
  const loaded = await optional("@parley/grpc", () => import("@parley/grpc"));
  if (loaded === undefined && option !== undefined) throw new Error("To serve gRPC, install @parley/grpc");
  return loaded;
}

/** Host and port, which is how gRPC names an address: without a scheme. */
export function grpcAddress(publicUrl: string, port: number | undefined): string {
  // What it is instead is said in the words of the handler.
  if (!URL.canParse(publicUrl)) return "";
  const { hostname, port: own, protocol } = new URL(publicUrl);
  return `${hostname}:${port ?? (own === "" ? (protocol === "https:" ? 443 : 80) : own)}`;
}
