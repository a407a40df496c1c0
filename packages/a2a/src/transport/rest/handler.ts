import type { LogFields } from "../../base/index.ts";
import {
  routeOfMethod,
  speaksRest,
  type RestCodec,
  type RestRoute,
  type RestWire,
  methodShapes,
  versionOfSilence,
} from "../../wire/codec.ts";
import { answerCall, type AnyReply, type ServerCall } from "../server/answer-call.ts";
import {
  cannotServe,
  interfaceAt,
  pathBelow,
  speakers,
  type BaseAddress,
  type HttpClaim,
  type HttpEndpoint,
  type ServerBinding,
  type ServerHost,
  type Target,
} from "../server/binding.ts";
import type { ServerContext } from "../server/context.ts";
import { codecOf, messageText, requestedVersion } from "../server/request.ts";
import {
  answerWith,
  tagged,
  bodyOf,
  errorResponse,
  failureOf,
  withExtensions,
  type Headers,
  type WireError,
} from "../server/response.ts";
import { streamHeaders, writeEvents, type EventFormat } from "../server/event-stream.ts";
import {
  allRoutes,
  compileRoutes,
  firstSegments,
  matchRoute,
  wholeSegments,
  readInput,
  decodeSegment,
  type RouteMatch,
  type RouteTable,
} from "./routes.ts";
import { A2AError, type ListTasksResponse } from "../../model/index.ts";
import {
  isMethod,
  type IncomingFiles,
  type MethodRoute,
  type OperationName,
  type Principal,
  type StreamItem,
  type StreamReply,
  type UniversalRequest,
  type UniversalResponse,
} from "../../protocol/index.ts";

const name = "HTTP+JSON";

/** REST at a server (A2A 1.0 §11). Serves the paths of the protocol below one path, with an optional tenant segment before them. */
export function restBinding(): ServerBinding {
  return {
    name,
    interfaces: (agent, codec) => (speaksRest(codec) ? [interfaceAt(agent, codec)] : []),
    http: {
      claim: (base, codecs) => claim(base, codecs.filter(speaksRest)),
      open: (host) => restEndpoint(host, speakers(name, host.codecs, speaksRest)),
    },
  };
}

function claim({ path, tenants, methods }: BaseAddress, codecs: readonly RestCodec[]): HttpClaim {
  const wires = codecs.map((codec) => wireOf(codec, methods));
  // A tenant name must not be a whole route, but may be the first segment of longer routes, such as `v1`.
  const noTenant = new Set(wires.flatMap(({ routes }) => wholeSegments(routes)));
  // Methods of extensions may have any longer path, which could conflict with a path of such a tenant.
  for (const segment of firstSegments((methods ?? []).map(routeOfMethod))) noTenant.add(segment);
  for (const tenant of tenants) {
    if (tenant === undefined || !noTenant.has(tenant)) continue;
    throw cannotServe(
      "tenant",
      `cannot be ${JSON.stringify(tenant)}, which is a path of the REST binding. Choose another tenant`,
    );
  }
  const tables = wires.map((wire) => compileRoutes(allRoutes(wire)));
  const named = new Set(tenants.map((tenant) => encodeURIComponent(tenant ?? "")));
  const segments = new Set([".well-known", ...wires.flatMap(({ routes }) => firstSegments(routes)), ...named]);
  return {
    below: path,
    owns(at) {
      const below = pathBelow(at, path);
      if (below === undefined) return false;
      // According to the protocol, `/api/tasks` is a path of the tenant `api`. In this version the segment is a tenant only if that tenant exists.
      return tables.some((table) => {
        const match = matchRoute(table, "GET", below);
        return match !== undefined && (match.tenant === undefined || named.has(match.tenant));
      });
    },
    reserves(at) {
      const below = pathBelow(at, path);
      // Otherwise a base above this path would match all paths below it.
      if (below === undefined) return pathBelow(path, at) !== undefined;
      return below === "" || segments.has(below.split("/")[1] ?? "");
    },
    beside: wires.flatMap(({ elsewhere = [] }) => elsewhere.map((route) => route.path)),
  };
}

/** The routes of a version, including the methods of extensions. */
function wireOf({ bindings }: RestCodec, methods: readonly MethodRoute[] = []): RestWire {
  const wire = bindings["HTTP+JSON"];
  return methods.length === 0 ? wire : { ...wire, routes: [...wire.routes, ...methods.map(routeOfMethod)] };
}

/** A version of the protocol with its compiled routes. */
interface RestVersion extends Pick<RestCodec, "version" | "aliases"> {
  readonly codec: RestCodec;
  readonly wire: RestWire;
  readonly table: RouteTable;
  readonly headers: Headers;
}

type RestVersions = readonly [RestVersion, ...RestVersion[]];

function restVersion(codec: RestCodec, methods: readonly MethodRoute[] | undefined): RestVersion {
  const wire = wireOf(codec, methods);
  return {
    version: codec.version,
    aliases: codec.aliases ?? [],
    codec,
    wire,
    table: compileRoutes(allRoutes(wire)),
    headers: { "content-type": wire.mediaType, "cache-control": "private, no-store" },
  };
}

function restEndpoint(host: ServerHost, [first, ...others]: readonly [RestCodec, ...RestCodec[]]): HttpEndpoint {
  const { methods } = host;
  const versions: RestVersions = [restVersion(first, methods), ...others.map((codec) => restVersion(codec, methods))];
  return { answer: (request, target) => answerCall(host, new RestServerCall(host, versions, request, target)) };
}

/** A route that matches the method and path of a request. */
interface CalledRoute extends RouteMatch {
  readonly route: RestRoute;
}

function isCalled(match: RouteMatch): match is CalledRoute {
  return match.route !== undefined;
}

function nothingHere(): A2AError {
  return new A2AError("MethodNotFound", "Nothing is served at this path");
}

/** One request. Its members are set while the request is read, and its answer or its error is written with them. */
class RestServerCall implements ServerCall<string, UniversalResponse>, EventFormat {
  readonly request: UniversalRequest;
  readonly streamsFiles = true;
  files?: IncomingFiles;
  readonly #host: ServerHost;
  readonly #versions: RestVersions;
  readonly #target: Target;
  #version: RestVersion;
  #match: RouteMatch | undefined;
  /** The matching route, once found. */
  #called: CalledRoute | undefined;
  /** The wire of the version, with the shapes for this request. */
  #wire: RestWire | undefined;

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
    return this.#wire ?? this.#version.wire;
  }

  get operation(): OperationName {
    return this.#found.route.operation;
  }

  get tenant(): string | undefined {
    const { tenant } = this.#found;
    return tenant !== undefined && this.codec.tenantInPath === true ? decodeSegment("tenant", tenant) : undefined;
  }

  get #found(): CalledRoute {
    if (this.#called === undefined) throw nothingHere();
    return this.#called;
  }

  body(principal: Principal): string | Promise<string> {
    this.#choose();
    const match = this.#match;
    if (match === undefined) throw nothingHere();
    if (!isCalled(match)) throw new A2AError("MethodNotAllowed", `This path accepts ${match.allow.join(", ")}`);
    this.#called = match;
    return this.request.method === "POST" ? messageText(this.#host, this, principal) : "";
  }

  read(text: string): unknown {
    const match = this.#found;
    const input = readInput(this.request, text, match, match.route, this.#target.query, this.#host.limits);
    const { operation } = match.route;
    const { wire } = this.#version;
    const shapes = isMethod(operation) ? methodShapes : wire.otherShapes?.(operation, input);
    if (shapes !== undefined) this.#wire = { ...wire, ...shapes };
    return input;
  }

  /** Chooses the version that the request names, or else the first version that has its path, unless `strictVersion` is set. */
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
      // This version may treat the first segment of another version's path as a tenant. The segment is a tenant only if that tenant exists.
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

  reply(reply: AnyReply, context: ServerContext): UniversalResponse | Promise<UniversalResponse> {
    const { operation, shapes } = this;
    if (operation === "GetExtendedAgentCard") return this.#card(reply, context);
    const next =
      shapes.listsAreArrays === true && operation === "ListTasks" ? pageHeaders(reply, this.#target.query) : {};
    const pieces = shapes.responsePieces?.<OperationName>(operation, reply);
    return {
      status: 200,
      headers: withExtensions({ ...this.#version.headers, ...next }, reply.extensions, this.request),
      body: bodyOf(pieces ?? shapes.encodeResponse<OperationName>(operation, reply), context, reply.inline),
    };
  }

  /** A card with `Cache-Control: private, no-cache`, so only its reader may cache the card, and must revalidate it (A2A 1.0 §8.6.1). */
  async #card(reply: AnyReply, context: ServerContext): Promise<UniversalResponse> {
    const text = this.shapes.encodeResponse<OperationName>(this.operation, reply);
    const caching = { "cache-control": "private, max-age=0, must-revalidate", vary: "Authorization, A2A-Version" };
    const headers = withExtensions({ ...this.#version.headers, ...caching }, reply.extensions, this.request);
    context.end();
    return answerWith(await tagged(text, headers), this.request);
  }

  stream({ batches, extensions, inline }: StreamReply, context: ServerContext): UniversalResponse {
    return {
      status: 200,
      headers: withExtensions(streamHeaders, extensions, this.request),
      body: writeEvents(batches, this, this.#host, context, this.operation, inline),
    };
  }

  event(item: StreamItem): string {
    return this.shapes.encodeEvent(item);
  }

  pieces(item: StreamItem): readonly string[] | undefined {
    return this.shapes.eventPieces?.(item);
  }

  /** The specification defines no event for errors within a stream. Clients read an event named `error` with the body of an error. */
  error(error: WireError): string {
    return `event: error\ndata: ${this.shapes.encodeError(error)}`;
  }

  fail(thrown: unknown, fields?: LogFields): UniversalResponse {
    const { request } = this;
    const match = this.#match;
    const told = { binding: "HTTP+JSON", operation: match?.route?.operation, ...fields };
    const error = failureOf(thrown, this.#host.logger, told, () => request.signal.aborted);
    const allow = error.code === "MethodNotAllowed" ? match?.allow.join(", ") : undefined;
    return errorResponse(this.codec, error, allow);
  }
}

function isTenant({ services }: ServerHost, segment: string): boolean {
  return [...services.keys()].some((name) => name !== undefined && encodeURIComponent(name) === segment);
}

/** Headers for a list that is an array, with the number of tasks and a relative link to the next page (RFC 8288). */
function pageHeaders({ payload }: AnyReply, query: string): Headers {
  const { nextPageToken, totalSize } = payload.value as ListTasksResponse;
  const total = { "x-total-count": String(totalSize) };
  if (nextPageToken === "") return total;
  const parameters = new URLSearchParams(query);
  for (const name of ["page_token", "pageToken"]) parameters.delete(name);
  parameters.set("pageToken", nextPageToken);
  return { ...total, link: `<?${parameters}>; rel="next"` };
}
