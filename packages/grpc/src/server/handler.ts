import type { CorsOptions } from "@parley/server/internal/handler";
import { withoutQuery, type LogFields } from "@parley/a2a/internal/base/index";
import type { UniversalHandler, UniversalRequest, UniversalResponse } from "@parley/a2a/internal/protocol/index";
import { challengeHeaders, failureOf } from "@parley/a2a/internal/transport/server/response";
import { corsPolicy, type CorsHeaders } from "@parley/a2a/internal/transport/server/origins";
import type { RequestLimits, ServerHost } from "@parley/a2a/internal/transport/server/binding";
import type { Codec } from "@parley/a2a/internal/wire/codec";
import { encodeMessage, isPreflight } from "../metadata.ts";
import { extensionServices, methodOf, serviceV03, serviceV1, type A2AServiceType } from "../services.ts";
import type { MessageType } from "../protobuf/types.ts";
import { statusCode, Statuses, StatusError } from "../status.ts";
import { a2aMethod, isSend, requestedCodec } from "./a2a.ts";
import type { ReadableRequest } from "./call-reader.ts";
import { Call, type Method } from "./call.ts";
import { FrameWriter, grpcFraming, WebFraming, type Framing, type Metadata } from "./framing.ts";
import { Health, reflectionMethods } from "./standard-services.ts";

/** Answers calls of gRPC and gRPC-Web. */
export interface GrpcHandler {
  readonly answer: UniversalHandler;
  /** Reports to health watchers that the server is stopping. Other calls end with their agents. */
  close(): void;
}

/** A method, and the codec that encodes its errors. */
interface Route {
  readonly method: Method;
  /** The type of its requests, for errors that name a field. Absent for methods outside A2A. */
  readonly input?: MessageType;
  readonly codecFor: (call: Call) => Codec;
  /** Its own limits, if any. */
  readonly limits?: RequestLimits;
  /** Whether its messages can have large files. */
  readonly takesFiles?: boolean;
}

/** Maximum message for health checks and reflection, in bytes. Anyone may call them, and a message contains only one name. */
const nameBytes = 4096;

interface GrpcHandlerOptions {
  readonly cors?: CorsOptions | boolean;
  /** In milliseconds. */
  readonly requestTimeout?: number;
}

/**
 * Serves agents by gRPC and gRPC-Web (A2A 1.0 §10): A2A in the versions 1.0 and 0.3, if the host speaks them, and the
 * services for health checks and reflection.
 */
export function grpcHandler(host: ServerHost, options: GrpcHandlerOptions = {}): GrpcHandler {
  const { cors = false, requestTimeout = 300_000 } = options;
  const frames = new FrameWriter();
  const { routes, services, files } = routesOf(host, frames);
  const [fallback] = host.codecs;
  const health = new Health(services, frames, () => host.readiness?.() ?? Promise.resolve("ready"));
  const standard = [...health.methods(), ...reflectionMethods([...services, ...standardServices], files, frames)];
  const limits = { ...host.limits, bodyBytes: Math.min(nameBytes, host.limits.bodyBytes) };
  for (const [path, method] of standard) {
    // A probe may use any host name, because its answer reveals nothing.
    const open = path === "/grpc.health.v1.Health/Check";
    routes.set(path, { method: open ? method : admitted(host, method), codecFor: () => fallback, limits });
  }
  const server = new Server(host, routes, requestTimeout);
  const policy = cors === false ? undefined : corsPolicy(cors, web);
  return {
    answer(request) {
      const origin = request.header("origin");
      const contentType = request.header("content-type") ?? "";
      const kind = kindOf(contentType);
      // Browsers only speak gRPC-Web.
      if (origin !== undefined && kind !== "grpc" && policy?.refuses(origin) !== false) host.refusedOrigin?.(request);
      if (policy !== undefined && isPreflight(request)) return { status: 204, headers: policy.preflight(origin) };
      const refused = refusal(kind, request);
      if (refused !== undefined) return refused;
      if (!isReadable(request)) return { status: 501, headers: {} };
      const granted = policy?.granted(origin) ?? {};
      if (kind === "grpc") return server.answer(request, request.url, grpcFraming);
      // gRPC has no query, but proxies may add one.
      return server.answer(request, withoutQuery(request.url), new WebFraming(contentType, granted));
    },
    close: () => health.stop(),
  };
}

const standardServices = [
  "grpc.health.v1.Health",
  "grpc.reflection.v1.ServerReflection",
  "grpc.reflection.v1alpha.ServerReflection",
];

/** Applies `host.admit` to a method. `answerCall` does this itself; other methods need it here. */
function admitted(host: ServerHost, method: Method): Method {
  return async (call) => {
    host.admit?.(call);
    return method(call);
  };
}

/** The services of A2A with their versions. */
const served: readonly (readonly [() => A2AServiceType, RegExp])[] = [
  [serviceV1, /^1\./],
  [serviceV03, /^0\.3$/],
];

interface Routes {
  readonly routes: Map<string, Route>;
  /** Full names of the served services. */
  readonly services: readonly string[];
  /** The .proto files of services outside A2A, in base64. */
  readonly files: readonly string[];
}

function routesOf(host: ServerHost, frames: FrameWriter): Routes {
  const routes = new Map<string, Route>();
  const services: string[] = [];
  for (const [read, versions] of served) {
    const [first, ...drafts] = host.codecs.filter(({ version }) => versions.test(version));
    if (first === undefined) continue;
    const service = read();
    services.push(service.name);
    // The 0.3 service has only one version, so its calls need not name the version.
    const spoken = [first, ...drafts] as const;
    const codecFor =
      drafts.length === 0 && first.version === "0.3" ? () => first : (call: Call) => requestedCodec(host, spoken, call);
    for (const [path, method] of service.methods) {
      const takesFiles = host.receiver !== undefined && isSend(method.operation);
      routes.set(path, {
        method: a2aMethod({ method, host, codecFor, frames }),
        input: method.input,
        codecFor,
        takesFiles,
      });
    }
  }
  // The service of a method belongs to no version.
  const codecFor = (call: Call): Codec => requestedCodec(host, host.codecs, call);
  for (const method of host.methods ?? []) {
    routes.set(method.grpc, { method: a2aMethod({ method: methodOf(method), host, codecFor, frames }), codecFor });
  }
  const added = extensionServices(host.methods ?? []);
  return { routes, services: [...services, ...added.keys()], files: [...added.values()] };
}

/** Routes calls to methods, and turns failures into trailers. */
class Server {
  readonly #host: ServerHost;
  readonly #routes: ReadonlyMap<string, Route>;
  readonly #unknown: Route;
  readonly #requestTimeout: number;
  readonly #statuses = new Statuses();

  constructor(host: ServerHost, routes: ReadonlyMap<string, Route>, requestTimeout: number) {
    this.#requestTimeout = requestTimeout;
    this.#host = host;
    this.#routes = routes;
    const none: Method = () => Promise.reject(new StatusError("UNIMPLEMENTED", "Unknown method"));
    this.#unknown = { method: admitted(host, none), codecFor: () => host.codecs[0] };
  }

  /** `path` names the method. */
  answer(request: ReadableRequest, path: string, framing: Framing): Promise<UniversalResponse> {
    const route = this.#routes.get(path) ?? this.#unknown;
    const call = new Call(request, {
      framing,
      limits: route.limits ?? this.#host.limits,
      requestTimeout: this.#requestTimeout,
      takesFiles: route.takesFiles,
      explain: (thrown, failed, fields) => this.#trailersOf(thrown, failed, route, fields),
    });
    try {
      call.start();
    } catch (error) {
      return Promise.resolve(call.fail(error));
    }
    return call.inTime(route.method(call).catch((error: unknown) => call.fail(error)));
  }

  #trailersOf(thrown: unknown, call: Call, route: Route, fields?: LogFields): Metadata {
    if (thrown instanceof StatusError) {
      const { status, message, metadata } = thrown;
      return { ...metadata, ...statusTrailers(statusCode(status), message) };
    }
    const context = { binding: "GRPC", method: withoutQuery(call.url), ...fields };
    const error = failureOf(thrown, this.#host.logger, context, () => call.signal.aborted);
    const { code, message, details } = this.#statuses.of(error, this.#codecOf(route, call), route.input);
    return {
      ...statusTrailers(code, message),
      ...(details !== undefined && { "grpc-status-details-bin": details }),
      ...challengeHeaders(error.challenge),
    };
  }

  /** The error of a call with an unknown version uses the first one. */
  #codecOf(route: Route, call: Call): Codec {
    try {
      return route.codecFor(call);
    } catch {
      return this.#host.codecs[0];
    }
  }
}

function statusTrailers(code: number, message: string): Metadata {
  return { "grpc-status": String(code), ...(message !== "" && { "grpc-message": encodeMessage(message) }) };
}

type Kind = "grpc" | "web" | "other";

function kindOf(contentType: string): Kind {
  // Most clients send exactly this.
  if (contentType === "application/grpc") return "grpc";
  const match = /^application\/grpc(-web(?:-text)?)?(?:\+proto)?(?:\s*;.*)?$/i.exec(contentType);
  if (match === null) return "other";
  return match[1] === undefined ? "grpc" : "web";
}

/** The answer to a request whose headers show that it is not a call. */
function refusal(kind: Kind, { method, takesTrailers }: UniversalRequest): UniversalResponse | undefined {
  if (kind === "grpc" && takesTrailers !== true) {
    // The usual cause is a proxy that speaks HTTP/1.1 to its servers.
    const body = "gRPC needs HTTP/2; over HTTP/1.1 there is gRPC-Web\n";
    return { status: 505, headers: { "content-type": "text/plain" }, body };
  }
  if (kind === "other") return { status: 415, headers: {} };
  return method === "POST" ? undefined : { status: 405, headers: {} };
}

function isReadable(request: UniversalRequest): request is ReadableRequest {
  return request.read !== undefined;
}

/** Headers that only gRPC-Web uses. */
const web: CorsHeaders = {
  methods: "POST",
  requestHeaders: ["x-grpc-web", "x-user-agent", "grpc-timeout"],
  exposedHeaders: ["grpc-status", "grpc-message", "grpc-status-details-bin"],
};
