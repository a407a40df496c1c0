import { A2AError } from "../../model/index.ts";
import type {
  OperationName,
  StreamItem,
  StreamReply,
  UniversalRequest,
  UniversalResponse,
} from "../../protocol/index.ts";
import { versionOfSilence } from "../../wire/codec.ts";
import type { RestCodec, RestRoute, RestWire } from "../../wire/bindings.ts";
import { answerCall, type AnyReply, type ServerCall } from "../server/answer-call.ts";
import type { HttpEndpoint, Target } from "../server/binding.ts";
import type { ServerHost } from "../server/host.ts";
import { bodyOf } from "../server/pieces.ts";
import { bodyText, codecOf, requestedVersion, type ServerContext } from "../server/request.ts";
import { errorResponse, failureOf, withExtensions, type Headers, type WireError } from "../server/response.ts";
import { streamHeaders, writeEvents, type EventFormat } from "../sse/write.ts";
import { readInput, unknownPath } from "./input.ts";
import { allRoutes, compileRoutes, decodeSegment, matchRoute, type RouteMatch, type RouteTable } from "./routes.ts";

/** A version of the binding, ready for use. */
interface RestVersion extends Pick<RestCodec, "version" | "aliases"> {
  readonly codec: RestCodec;
  readonly wire: RestWire;
  readonly table: RouteTable;
  readonly headers: Headers;
}

type RestVersions = readonly [RestVersion, ...RestVersion[]];

function restVersion(codec: RestCodec): RestVersion {
  const wire = codec.bindings["HTTP+JSON"];
  return {
    version: codec.version,
    aliases: codec.aliases ?? [],
    codec,
    wire,
    table: compileRoutes(allRoutes(wire)),
    headers: { "content-type": wire.mediaType, "cache-control": "private, no-store" },
  };
}

export function restEndpoint(host: ServerHost, [first, ...others]: readonly [RestCodec, ...RestCodec[]]): HttpEndpoint {
  const versions: RestVersions = [restVersion(first), ...others.map(restVersion)];
  return { answer: (request, target) => answerCall(host, new RestServerCall(host, versions, request, target)) };
}

/** A request, as far as it has been read: its answer, whatever it is, is put in these words. */
class RestServerCall implements ServerCall<string, UniversalResponse>, EventFormat {
  readonly request: UniversalRequest;
  readonly #host: ServerHost;
  readonly #versions: RestVersions;
  readonly #target: Target;
  #version: RestVersion;
  #match: RouteMatch | undefined;
  #route: RestRoute | undefined;

  constructor(host: ServerHost, versions: RestVersions, request: UniversalRequest, target: Target) {
    this.request = request;
    this.#host = host;
    this.#versions = versions;
    this.#target = target;
    this.#version = versions[0];
  }

  get codec(): RestCodec {
    return this.#version.codec;
  }

  get shapes(): RestWire {
    return this.#version.wire;
  }

  get operation(): OperationName {
    return (this.#route as RestRoute).operation;
  }

  get tenant(): string | undefined {
    const { tenant } = this.#match as RouteMatch;
    return tenant !== undefined && this.codec.tenantInPath === true ? decodeSegment("tenant", tenant) : undefined;
  }

  body(): string | Promise<string> {
    this.#choose();
    const match = this.#match;
    if (match === undefined) throw unknownPath();
    this.#route = match.route;
    if (match.route === undefined) {
      throw new A2AError("MethodNotAllowed", `This path takes ${match.allow.join(", ")}`);
    }
    return this.request.method === "POST" ? bodyText(this.request, this.#host.limits) : "";
  }

  read(text: string): unknown {
    const match = this.#match as RouteMatch;
    const route = this.#route as RestRoute;
    return readInput(this.request, text, match, route, this.#target.query, this.#host.limits);
  }

  /** Takes the version that the request names, else the one that has its path (see `strictVersion`). */
  #choose(): void {
    const { strictVersion } = this.#host;
    const versions = this.#versions;
    const named = requestedVersion(this.request, this.#target.query) ?? (strictVersion ? versionOfSilence : undefined);
    if (named !== undefined) {
      this.#take(codecOf(versions, named));
      return;
    }
    let otherMethod: RestVersion | undefined;
    for (const version of versions) {
      const match = this.#take(version);
      // The first segment of another version's path is a tenant to this one: only where there is one of that name.
      if (match === undefined || (match.tenant !== undefined && !isTenant(this.#host, match.tenant))) continue;
      if (match.route !== undefined) return;
      otherMethod ??= version;
    }
    this.#take(otherMethod ?? versions[0]);
  }

  #take(version: RestVersion): RouteMatch | undefined {
    this.#version = version;
    return (this.#match = matchRoute(version.table, this.request.method, this.#target.path));
  }

  reply(reply: AnyReply, context: ServerContext): UniversalResponse {
    const { operation, shapes } = this;
    const pieces = shapes.responsePieces?.<OperationName>(operation, reply);
    return {
      status: 200,
      headers: withExtensions(this.#version.headers, reply.extensions, this.request),
      body: bodyOf(pieces ?? shapes.encodeResponse<OperationName>(operation, reply), context),
    };
  }

  stream({ batches, extensions }: StreamReply, context: ServerContext): UniversalResponse {
    return {
      status: 200,
      headers: withExtensions(streamHeaders, extensions, this.request),
      body: writeEvents(batches, this, this.#host, context, this.operation),
    };
  }

  event(item: StreamItem): string {
    return this.shapes.encodeEvent(item);
  }

  pieces(item: StreamItem): readonly string[] | undefined {
    return this.shapes.eventPieces?.(item);
  }

  /** The text has no word for an error in mid-stream; an event of this name with the error's body is what peers read. */
  error(error: WireError): string {
    return `event: error\ndata: ${this.shapes.encodeError(error)}`;
  }

  fail(thrown: unknown): UniversalResponse {
    const { request } = this;
    const match = this.#match;
    const told = { binding: "HTTP+JSON", operation: match?.route?.operation };
    const error = failureOf(thrown, this.#host.logger, told, () => request.signal.aborted);
    const allow = error.code === "MethodNotAllowed" ? match?.allow.join(", ") : undefined;
    return errorResponse(this.codec, error, allow);
  }
}

function isTenant({ services }: ServerHost, segment: string): boolean {
  return [...services.keys()].some((name) => name !== undefined && encodeURIComponent(name) === segment);
}
