import type { RestWire, Shapes } from "../codec.ts";
import { decodeRestError, encodeRestError } from "./errors.ts";
import { routes } from "./routes.ts";

/** REST of 0.3 over the shapes that are given. */
export function restOf(shapes: Shapes): RestWire {
  return {
    ...shapes,
    routes,
    mediaType: "application/json",
    encodeError: encodeRestError,
    decodeError: decodeRestError,
  };
}
