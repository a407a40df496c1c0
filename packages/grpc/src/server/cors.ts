import type { CorsOptions } from "@parley/a2a";
import type { Metadata } from "./wire.ts";

const requestHeaders = [
  "content-type",
  "x-grpc-web",
  "x-user-agent",
  "grpc-timeout",
  "authorization",
  "a2a-version",
  "a2a-extensions",
  "x-a2a-extensions",
  "last-event-id",
  "traceparent",
];
const exposedHeaders = "grpc-status, grpc-message, grpc-status-details-bin, a2a-extensions, x-a2a-extensions";

/** Which pages of other origins may call by gRPC-Web (D14). */
export interface Cors {
  /** Headers of an answer to a page of this origin. */
  granted(origin: string | undefined): Metadata;
  /** Headers of the answer to a browser that asks first. */
  preflight(origin: string | undefined): Metadata;
}

export function corsOf(options: CorsOptions | boolean): Cors {
  if (options === false) return { granted: () => ({}), preflight: () => ({}) };
  const { origins, headers = [], maxAge = 7200 }: CorsOptions = options === true ? { origins: "*" } : options;
  const any = origins === "*";
  // With a list the answer differs by who asks, whether or not this one may.
  const vary: Metadata = any ? {} : { vary: "Origin" };
  const granted = (origin: string | undefined): Metadata =>
    origin !== undefined && (any || origins.includes(origin))
      ? { ...vary, "access-control-allow-origin": any ? "*" : origin, "access-control-expose-headers": exposedHeaders }
      : vary;
  return {
    granted,
    preflight: (origin) => {
      const may = granted(origin);
      if (may["access-control-allow-origin"] === undefined) return may;
      return {
        ...may,
        "access-control-allow-methods": "POST",
        "access-control-allow-headers": [...requestHeaders, ...headers].join(", "),
        "access-control-max-age": String(maxAge),
      };
    },
  };
}
