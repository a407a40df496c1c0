import { A2AError } from "../../model/index.ts";
import type { UniversalResponse } from "../../protocol/index.ts";
import type { Codec } from "../../wire/codec.ts";
import type { WireError } from "../server/response.ts";
import { errorResponse } from "../rest/errors.ts";

const allow = "GET, HEAD";

/** Outside of every binding, errors are said as the REST binding says them. */
export function methodNotAllowed(codec: Codec): UniversalResponse {
  return errorResponse(codec, new A2AError("MethodNotAllowed", `A card takes ${allow}`) as WireError, allow);
}

export function notFound(codec: Codec): UniversalResponse {
  return errorResponse(codec, new A2AError("MethodNotFound", "There is nothing at this path") as WireError);
}
