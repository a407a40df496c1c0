import { A2AError } from "../../model/index.ts";
import type {
  OperationName,
  Principal,
  StreamName,
  UnaryName,
  UniversalRequest,
  UniversalResponse,
} from "../../protocol/index.ts";
import type { Codec, RestRoute } from "../../wire/codec.ts";
import { serviceOf, type Binding, type Endpoint, type Target } from "../server/binding.ts";
import { callContext, codecOf, requestedVersion, versionOfSilence } from "../server/request.ts";
import { failureOf, withExtensions, type Headers } from "../server/response.ts";
import { streamHeaders, writeEvents } from "../sse/write.ts";
import { errorResponse } from "./errors.ts";
import { readInput, unknownPath } from "./input.ts";
import { compileRoutes, matchRoute, type RouteMatch, type RouteTable } from "./routes.ts";

/** A version of the binding, ready for use. */
interface RestVersion {
  readonly codec: Codec;
  readonly table: RouteTable;
  readonly headers: Headers;
}

function restVersion(codec: Codec): RestVersion {
  return {
    codec,
    table: compileRoutes(codec.rest.routes),
    headers: { "content-type": codec.rest.mediaType, "cache-control": "private, no-store" },
  };
}

/** The HTTP+JSON binding (A2A 1.0 §11): routes below the base, an optional tenant segment first. */
export function restEndpoint(binding: Binding): Endpoint {
  const [first, ...others] = binding.codecs;
  const versions = [restVersion(first), ...others.map(restVersion)] as const;
  return async (request, target) => {
    let codec: Codec = binding.codecs[0];
    let match: RouteMatch | undefined;
    try {
      const principal = await binding.authenticate(request);
      const version = versionOf(binding, versions, request, target);
      codec = version.codec;
      match = matchRoute(version.table, request.method, target.path);
      if (match === undefined) throw unknownPath();
      if (match.route === undefined) {
        throw new A2AError("MethodNotAllowed", `This path takes ${match.allow.join(", ")}`);
      }
      return await answer(binding, version, match, match.route, request, target, principal);
    } catch (thrown) {
      const error = failureOf(thrown, binding.logger, { binding: "HTTP+JSON", operation: match?.route?.operation });
      return errorResponse(codec, error, error.code === "MethodNotAllowed" ? match?.allow.join(", ") : undefined);
    }
  };
}

/** The version that a request names, else the one that has its path (see `strictVersion`). */
function versionOf(
  binding: Binding,
  versions: readonly [RestVersion, ...RestVersion[]],
  request: UniversalRequest,
  target: Target,
): RestVersion {
  const named = requestedVersion(request, target.query) ?? (binding.strictVersion ? versionOfSilence : undefined);
  if (named !== undefined) {
    const codec = codecOf(binding.codecs, named);
    return versions.find((version) => version.codec === codec) ?? versions[0];
  }
  if (versions.length === 1) return versions[0];
  const has = ({ table }: RestVersion) => matchRoute(table, request.method, target.path)?.route !== undefined;
  return versions.find(has) ?? versions[0];
}

async function answer(
  binding: Binding,
  { codec, headers }: RestVersion,
  match: RouteMatch,
  route: RestRoute,
  request: UniversalRequest,
  target: Target,
  principal: Principal,
): Promise<UniversalResponse> {
  const { operation } = route;
  const input = codec.decodeRequest(operation, await readInput(request, match, route, target.query, binding.limits));
  const service = serviceOf(binding, input.tenant);
  const stream = binding.operations[operation]?.stream === true;
  const context = callContext(request, principal, codec.version, stream);
  if (stream) {
    const reply = await service.stream(operation as StreamName, input as never, context);
    return {
      status: 200,
      headers: withExtensions(streamHeaders, reply.extensions),
      body: writeEvents(
        reply.batches,
        {
          event: (item) => codec.encodeEvent(item),
          // The text has no word for an error in mid-stream; an event of this name with the error's body is what peers read.
          error: (error) => `event: error\ndata: ${codec.rest.encodeError(error)}`,
        },
        binding,
        operation,
      ),
    };
  }
  const reply = await service.call(operation as UnaryName, input, context);
  return {
    status: 200,
    headers: withExtensions(headers, reply.extensions),
    body: codec.encodeResponse<OperationName>(operation, reply),
  };
}
