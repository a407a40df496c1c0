import type { IncomingMessage, ServerResponse } from "node:http";
import type { IncomingHttpHeaders, ServerHttp2Stream } from "node:http2";
import type { CorsOptions } from "@parley/a2a";
import {
  corsPolicy,
  failureOf,
  type ServerHost,
  type Codec,
  type CorsBinding,
  type CorsPolicy,
  type RequestLimits,
} from "@parley/a2a/transport";
import { encodeMessage } from "../metadata.ts";
import { serviceV03, serviceV1, type A2AServiceType } from "../services.ts";
import { statusCode, Statuses } from "../status.ts";
import { a2aMethod, requestedCodec } from "./a2a.ts";
import { Call } from "./call.ts";
import { Health } from "./health.ts";
import { Http2Wire } from "./http2-wire.ts";
import { FrameWriter, type Method } from "./method.ts";
import { reflectionMethods } from "./reflection.ts";
import { StatusError } from "./status-error.ts";
import { http1Exchange, http2Exchange, WebWire } from "./web-wire.ts";
import type { Metadata, Wire } from "./wire.ts";

export interface GrpcOptions {
  /** Which pages of other origins may call by gRPC-Web; `true`: any. Default: none. */
  readonly cors?: CorsOptions | boolean;
  /** A call whose peer takes nothing for this many milliseconds while an answer waits to go out is broken off. Default 30 s. */
  readonly stallTimeout?: number;
  /** How long a message that has begun may take to come in whole, in milliseconds. Default 5 minutes. */
  readonly requestTimeout?: number;
}

/** What answers gRPC and gRPC-Web on a port that it may share with others. Each function says whether the request was its own. */
export interface GrpcHandler {
  /** For the `stream` event of a server of `node:http2`. */
  http2(this: void, stream: ServerHttp2Stream, headers: IncomingHttpHeaders): boolean;
  /** For the `request` event of a server of `node:http`: gRPC-Web. */
  http1(this: void, incoming: IncomingMessage, response: ServerResponse): boolean;
  /** Tells those who watch the health that nothing is served any more. Calls end with the agents behind them. */
  close(this: void): Promise<void>;
}

/** A method, and the version whose words its errors are put in. */
interface Route {
  readonly method: Method;
  readonly codecFor: (call: Call) => Codec;
  /** Where they are not those of all requests. */
  readonly limits?: RequestLimits;
}

/** Largest message to health checks and reflection, which anyone may send: they carry a name. */
const nameBytes = 4096;

/**
 * Serves agents by gRPC and gRPC-Web (A2A 1.0 §10): the services of 1.0 and 0.3 as far as the binding speaks these
 * versions, beside them health and reflection.
 */
export function grpcHandler(binding: ServerHost, options: GrpcOptions = {}): GrpcHandler {
  const { cors = false, stallTimeout = 30_000, requestTimeout = 300_000 } = options;
  const frames = new FrameWriter();
  const { routes, services } = routesOf(binding, frames);
  const [fallback] = binding.codecs;
  const health = new Health(services, frames);
  const own = [...health.methods(), ...reflectionMethods([...services, ...ownServices], frames)];
  const limits = { ...binding.limits, bodyBytes: Math.min(nameBytes, binding.limits.bodyBytes) };
  for (const [path, method] of own) routes.set(path, { method, codecFor: () => fallback, limits });
  const server = new Server(binding, routes, requestTimeout);
  const policy = cors === false ? undefined : corsPolicy(cors, web);
  const granted = (headers: IncomingHttpHeaders): Metadata => policy?.granted(headers.origin) ?? {};
  const asks = preflightOf(routes, policy);
  return {
    http2(stream, headers) {
      const contentType = headers["content-type"];
      const preflight = asks(headers[":method"], headers[":path"], headers);
      if (preflight !== undefined) {
        stream.respond({ ":status": 204, ...preflight }, { endStream: true });
        return true;
      }
      const kind = kindOf(contentType);
      if (kind === undefined || contentType === undefined) return false;
      // A stream that nobody listens to ends the process with its errors; that its peer is gone is told by `close`.
      stream.on("error", ignore);
      const refused = refusal(kind, headers[":method"]);
      if (refused !== undefined) {
        stream.respond(refused, { endStream: true });
        stream.resume();
      } else if (kind === "grpc") server.answer(new Http2Wire(stream, headers, stallTimeout));
      else {
        server.answer(new WebWire(http2Exchange(stream, headers), contentType, granted(headers), stallTimeout));
      }
      return true;
    },
    http1(incoming, response) {
      const contentType = incoming.headers["content-type"];
      const preflight = asks(incoming.method, incoming.url, incoming.headers);
      if (preflight !== undefined) {
        response.writeHead(204, preflight).end();
        return true;
      }
      const kind = kindOf(contentType);
      if (kind === undefined || contentType === undefined) return false;
      const refused = kind === "grpc" ? { ":status": 505 } : refusal(kind, incoming.method);
      if (refused !== undefined) {
        response.writeHead(refused[":status"], { "content-type": "text/plain" });
        // Who comes here is mostly behind a proxy that speaks HTTP/1.1 to what is behind it.
        response.end(kind === "grpc" ? "gRPC needs HTTP/2; over HTTP/1.1 there is gRPC-Web\n" : "");
        incoming.resume();
        return true;
      }
      server.answer(
        new WebWire(http1Exchange(incoming, response), contentType, granted(incoming.headers), stallTimeout),
      );
      return true;
    },
    close() {
      health.stop();
      return Promise.resolve();
    },
  };
}

const ownServices = [
  "grpc.health.v1.Health",
  "grpc.reflection.v1.ServerReflection",
  "grpc.reflection.v1alpha.ServerReflection",
];

/** Which versions each service is the binding of. */
const served: readonly (readonly [() => A2AServiceType, RegExp])[] = [
  [serviceV1, /^1\./],
  [serviceV03, /^0\.3$/],
];

function routesOf(binding: ServerHost, frames: FrameWriter): { routes: Map<string, Route>; services: string[] } {
  const routes = new Map<string, Route>();
  const services: string[] = [];
  for (const [read, versions] of served) {
    const [first, ...drafts] = binding.codecs.filter(({ version }) => versions.test(version));
    if (first === undefined) continue;
    const service = read();
    services.push(service.name);
    // The service of 0.3 has no other version.
    const spoken = [first, ...drafts] as const;
    const codecFor =
      drafts.length === 0 && first.version === "0.3"
        ? () => first
        : (call: Call) => requestedCodec(binding, spoken, call);
    for (const [path, method] of service.methods) {
      routes.set(path, { method: a2aMethod(method, binding, codecFor, frames), codecFor });
    }
  }
  return { routes, services };
}

/** Has calls answered, and ends those that fail. */
class Server {
  readonly #binding: ServerHost;
  readonly #routes: ReadonlyMap<string, Route>;
  readonly #requestTimeout: number;
  readonly #statuses = new Statuses();

  constructor(binding: ServerHost, routes: ReadonlyMap<string, Route>, requestTimeout: number) {
    this.#requestTimeout = requestTimeout;
    this.#binding = binding;
    this.#routes = routes;
  }

  answer(wire: Wire): void {
    const route = this.#routes.get(wire.path);
    const call = new Call(wire, route?.limits ?? this.#binding.limits, this.#requestTimeout);
    try {
      call.start((error) => this.#fail(call, route, error));
      this.#binding.admit?.(call);
      if (route === undefined) throw new StatusError("UNIMPLEMENTED", "There is no such method here");
      route.method(call).catch((error: unknown) => this.#fail(call, route, error));
    } catch (error) {
      this.#fail(call, route, error);
    }
  }

  #fail(call: Call, route: Route | undefined, thrown: unknown): void {
    // Whoever is gone hears nothing any more.
    if (call.over) return;
    if (thrown instanceof StatusError) {
      const { status, message, metadata } = thrown;
      call.close({ ...metadata, ...trailersOf(statusCode(status), message) });
      return;
    }
    const error = failureOf(thrown, this.#binding.logger, { binding: "GRPC", method: call.url }, () => call.over);
    const { code, message, details } = this.#statuses.of(error, this.#codecOf(route, call));
    call.close({
      ...trailersOf(code, message),
      ...(details !== undefined && { "grpc-status-details-bin": details }),
      ...(error.challenge !== undefined && { "www-authenticate": error.challenge }),
    });
  }

  /** Of a version that nobody speaks here the error is told in the words of the first one. */
  #codecOf(route: Route | undefined, call: Call): Codec {
    try {
      return route?.codecFor(call) ?? this.#binding.codecs[0];
    } catch {
      return this.#binding.codecs[0];
    }
  }
}

function trailersOf(code: number, message: string): Metadata {
  return { "grpc-status": String(code), ...(message !== "" && { "grpc-message": encodeMessage(message) }) };
}

type Kind = "grpc" | "web" | "other";

/** What a content type asks for; nothing of ours where it does not begin as gRPC's do. */
function kindOf(contentType: string | undefined): Kind | undefined {
  if (contentType === undefined || !contentType.startsWith("application/grpc")) return undefined;
  // As gRPC's clients send it, but for a few.
  if (contentType === "application/grpc") return "grpc";
  const match = /^application\/grpc(-web(?:-text)?)?(?:\+proto)?(?:\s*;.*)?$/i.exec(contentType);
  if (match === null) return "other";
  return match[1] === undefined ? "grpc" : "web";
}

function refusal(kind: Kind, method: string | undefined): { ":status": number } | undefined {
  if (kind === "other") return { ":status": 415 };
  return method === "POST" ? undefined : { ":status": 405 };
}

/** What gRPC-Web has beside the other bindings of HTTP. */
const web: CorsBinding = {
  methods: "POST",
  requestHeaders: ["x-grpc-web", "x-user-agent", "grpc-timeout"],
  exposedHeaders: ["grpc-status", "grpc-message", "grpc-status-details-bin"],
};

/** Answers a browser that asks before it calls one of the methods; `undefined` for every other request. */
function preflightOf(routes: ReadonlyMap<string, unknown>, policy: CorsPolicy | undefined) {
  return (method: string | undefined, url: string | undefined, headers: IncomingHttpHeaders): Metadata | undefined => {
    if (policy === undefined || method !== "OPTIONS" || url === undefined || !routes.has(url)) return undefined;
    return headers["access-control-request-method"] === undefined ? undefined : policy.preflight(headers.origin);
  };
}

function ignore(): void {}
