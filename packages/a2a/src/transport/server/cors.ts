import type { UniversalHandler, UniversalRequest, UniversalResponse } from "../../protocol/index.ts";
import type { Headers } from "./response.ts";

/** Which pages of other origins may call (D14). */
export interface CorsOptions {
  /** Origins such as `https://app.example.com`; `"*"`: any. */
  readonly origins: "*" | readonly string[];
  /** Further request headers that pages may send, such as that of an API key. */
  readonly headers?: readonly string[];
  /** How long a browser may keep the permission, in seconds. Default 7200. */
  readonly maxAge?: number;
}

const requestHeaders = [
  "content-type",
  "authorization",
  "a2a-version",
  "a2a-extensions",
  "x-a2a-extensions",
  "last-event-id",
  "if-none-match",
  "traceparent",
];
const exposedHeaders = "a2a-extensions, x-a2a-extensions, www-authenticate, retry-after, etag";

/** Lets pages of other origins call `handler`, and read the headers that the protocol needs. */
export function withCors(handler: UniversalHandler, options: CorsOptions | true): UniversalHandler {
  const { origins, headers = [], maxAge = 7200 }: CorsOptions = options === true ? { origins: "*" } : options;
  const any = origins === "*";
  const allowed = new Set(any ? [] : origins);
  // With a list the answer differs by who asks, whether or not this one may.
  const vary: Headers = any ? {} : { vary: "Origin" };
  const preflight: Headers = {
    "access-control-allow-methods": "GET, HEAD, POST, DELETE",
    "access-control-allow-headers": [...requestHeaders, ...headers].join(", "),
    "access-control-max-age": String(maxAge),
  };

  const permission = (origin: string | undefined): Headers =>
    origin !== undefined && (any || allowed.has(origin))
      ? { ...vary, "access-control-allow-origin": any ? "*" : origin, "access-control-expose-headers": exposedHeaders }
      : vary;

  const permit = (response: UniversalResponse, granted: Headers): UniversalResponse => {
    const varies = response.headers["vary"];
    const both = varies !== undefined && granted["vary"] !== undefined ? { vary: `${varies}, ${granted["vary"]}` } : {};
    return { ...response, headers: { ...response.headers, ...granted, ...both } };
  };

  return (request) => {
    const granted = permission(request.header("origin"));
    if (isPreflight(request)) {
      const may = granted["access-control-allow-origin"] !== undefined;
      return { status: 204, headers: may ? { ...granted, ...preflight } : granted };
    }
    const response = handler(request);
    if (any && granted === vary) return response;
    return response instanceof Promise ? response.then((each) => permit(each, granted)) : permit(response, granted);
  };
}

function isPreflight(request: UniversalRequest): boolean {
  return request.method === "OPTIONS" && request.header("access-control-request-method") !== undefined;
}
