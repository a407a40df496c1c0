import { A2AError } from "../../model/index.ts";
import type {
  OperationName,
  Principal,
  StreamName,
  StreamReply,
  UniversalRequest,
  UniversalResponse,
} from "../../protocol/index.ts";
import type { Codec, RestRoute } from "../../wire/codec.ts";
import type { Binding, Endpoint, HttpBinding, Target } from "../server/binding.ts";
import { invoke, type Invoked } from "../server/invoke.ts";
import { bodyText, codecOf, requestedVersion, versionOfSilence, type ServerContext } from "../server/request.ts";
import { bodyOf } from "../server/pieces.ts";
import { failureOf, withExtensions, type Headers } from "../server/response.ts";
import { streamHeaders, writeEvents } from "../sse/write.ts";
import { errorResponse } from "./errors.ts";
import { readInput, unknownPath } from "./input.ts";
import { compileRoutes, decodeSegment, matchRoute, type RouteMatch, type RouteTable } from "./routes.ts";

/** A version of the binding, ready for use. */
interface RestVersion {
  readonly codec: Codec;
  readonly table: RouteTable;
  readonly headers: Headers;
}

function restVersion(codec: Codec): RestVersion {
  return {
    codec,
    table: compileRoutes([...codec.rest.routes, ...(codec.rest.elsewhere ?? [])]),
    headers: { "content-type": codec.rest.mediaType, "cache-control": "private, no-store" },
  };
}

/** The HTTP+JSON binding (A2A 1.0 §11): routes below the base, an optional tenant segment first. */
export function restEndpoint(binding: HttpBinding): Endpoint {
  const [first, ...others] = binding.codecs;
  const versions = [restVersion(first), ...others.map(restVersion)] as const;
  return async (request, target) => {
    let codec: Codec = binding.codecs[0];
    let match: RouteMatch | undefined;
    let context: ServerContext | undefined;
    try {
      const known = binding.authenticate(request);
      const principal = known instanceof Promise ? await known : known;
      const chosen = choose(binding, versions, request, target);
      const { version } = chosen;
      codec = version.codec;
      match = chosen.match;
      if (match === undefined) throw unknownPath();
      if (match.route === undefined) {
        throw new A2AError("MethodNotAllowed", `This path takes ${match.allow.join(", ")}`);
      }
      const { route } = match;
      // Neither the text nor what it says stands in a variable here: those live until the answer, which may be hours away.
      const invoked = invokeRoute(
        binding,
        codec,
        match,
        route,
        request,
        target.query,
        principal,
        request.method === "POST" ? await bodyText(request, binding.limits) : "",
      );
      context = invoked.context;
      if (invoked.stream) return streamed(binding, codec, request, context, invoked.operation, await invoked.reply);
      const reply = await invoked.reply;
      const pieces = codec.rest.responsePieces?.<OperationName>(invoked.operation, reply);
      return {
        status: 200,
        headers: withExtensions(version.headers, reply.extensions, request),
        body: bodyOf(pieces ?? codec.rest.encodeResponse<OperationName>(invoked.operation, reply), context),
      };
    } catch (thrown) {
      context?.end();
      const operation = match?.route?.operation;
      const error = failureOf(
        thrown,
        binding.logger,
        { binding: "HTTP+JSON", operation },
        () => request.signal.aborted,
      );
      return errorResponse(codec, error, error.code === "MethodNotAllowed" ? match?.allow.join(", ") : undefined);
    }
  };
}

function invokeRoute(
  binding: Binding,
  codec: Codec,
  match: RouteMatch,
  route: RestRoute,
  request: UniversalRequest,
  query: string,
  principal: Principal,
  text: string,
): Invoked {
  const input = readInput(request, text, match, route, query, binding.limits);
  const { tenantInPath = false } = codec;
  const tenant = tenantInPath && match.tenant !== undefined ? decodeSegment("tenant", match.tenant) : undefined;
  return invoke(binding, codec, codec.rest, route.operation, input, request, principal, tenant);
}

/** A version, and what the path of a request is to it. */
interface Chosen {
  readonly version: RestVersion;
  readonly match: RouteMatch | undefined;
}

/** The version that a request names, else the one that has its path (see `strictVersion`). */
function choose(
  binding: Binding,
  versions: readonly [RestVersion, ...RestVersion[]],
  request: UniversalRequest,
  target: Target,
): Chosen {
  const within = (version: RestVersion): Chosen => {
    return { version, match: matchRoute(version.table, request.method, target.path) };
  };
  const named = requestedVersion(request, target.query) ?? (binding.strictVersion ? versionOfSilence : undefined);
  if (named !== undefined) {
    const codec = codecOf(binding.codecs, named);
    return within(versions.find((version) => version.codec === codec) ?? versions[0]);
  }
  let otherMethod: Chosen | undefined;
  for (const version of versions) {
    const chosen = within(version);
    const { match } = chosen;
    // The first segment of another version's path is a tenant to this one: only where there is one of that name.
    if (match === undefined || (match.tenant !== undefined && !isTenant(binding, match.tenant))) continue;
    if (match.route !== undefined) return chosen;
    otherMethod ??= chosen;
  }
  return otherMethod ?? within(versions[0]);
}

function isTenant({ services }: Binding, segment: string): boolean {
  return [...services.keys()].some((name) => name !== undefined && encodeURIComponent(name) === segment);
}

function streamed(
  binding: HttpBinding,
  codec: Codec,
  request: UniversalRequest,
  context: ServerContext,
  operation: StreamName,
  { batches, extensions }: StreamReply,
): UniversalResponse {
  return {
    status: 200,
    headers: withExtensions(streamHeaders, extensions, request),
    body: writeEvents(
      batches,
      {
        event: (item) => codec.rest.encodeEvent(item),
        pieces: (item) => codec.rest.eventPieces?.(item),
        // The text has no word for an error in mid-stream; an event of this name with the error's body is what peers read.
        error: (error) => `event: error\ndata: ${codec.rest.encodeError(error)}`,
      },
      binding,
      context,
      operation,
    ),
  };
}
