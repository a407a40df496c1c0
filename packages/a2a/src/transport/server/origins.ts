import { isLoopback } from "../../base/index.ts";
import { A2AError, invalidParams, type AgentCard } from "../../model/index.ts";
import { isArray } from "../../model/schema.ts";
import type { UniversalHandler, UniversalRequest, UniversalResponse } from "../../protocol/index.ts";

/** Throws `PermissionDenied` for a request to a host, or from a page, that is not allowed. */
export type Admission = (request: UniversalRequest) => void;

/**
 * Allows only requests to the host names of a server. This prevents DNS rebinding, in which a browser lets a page of `evil.example` read
 * answers of that host name, although the name resolves to this machine a moment later. The header `Host` still has the name that the page
 * used. The header `Origin` reveals requests of pages that cannot read the answer but could cause an action.
 *
 * @param allowed - Host names in addition to the loopback names, with or without a port. Ports are not compared. `"*"` allows any.
 * @param origins - Origins of the pages that may call (CORS).
 * @throws A2AError `InvalidParams` for an element that is not a host name.
 */
export function admission(allowed: readonly string[], origins: "*" | readonly string[]): Admission | undefined {
  if (allowed.includes("*")) return undefined;
  const names = new Set(
    allowed.map((name) => {
      const host = hostOf(name);
      if (host !== undefined) return host;
      const description = `has ${JSON.stringify(name)}, which is not a host such as "agents.example.com"`;
      throw invalidParams(
        [{ field: "allowedHosts", description }],
        `This cannot be served: allowedHosts ${description}`,
      );
    }),
  );
  const pages = new Set(origins === "*" ? [] : origins);
  const isOurs = (host: string | undefined): boolean => host !== undefined && (isLoopback(host) || names.has(host));
  // Caches the last allowed host name, because most requests name the same host.
  let known: string | undefined;
  return (request) => {
    const host = request.header("host");
    if (host !== undefined && host !== known) {
      if (!isOurs(hostOf(host))) throw refuse(`the host ${quote(host)}`);
      known = host;
    }
    const origin = request.header("origin");
    if (origin === undefined || origins === "*" || pages.has(origin)) return;
    if (!isOurs(URL.canParse(origin) ? nameOf(new URL(origin)) : undefined)) throw refuse(`pages of ${quote(origin)}`);
  };
}

/** The hosts in the addresses of a card: URLs, or `agents.example.com:443` for gRPC. Ignores other kinds of addresses. */
export function hostsOf({ supportedInterfaces }: Pick<AgentCard, "supportedInterfaces">): readonly string[] {
  const authorities = supportedInterfaces.flatMap(({ url }) =>
    url.replace(/^[a-z][\w+.-]*:(?:\/\/|(?=\D))/i, "").split(/[/?#]/, 1),
  );
  return authorities.filter((authority) => hostOf(authority) !== undefined);
}

/** The name in `name`, `name:port` or `[::1]:port`. */
function hostOf(text: string): string | undefined {
  if (/[/?#@\\\s]/.test(text) || !URL.canParse(`http://${text}`)) return undefined;
  return nameOf(new URL(`http://${text}`));
}

function nameOf({ hostname }: URL): string | undefined {
  return hostname.replace(/\.$/, "") || undefined;
}

function quote(text: string): string {
  return JSON.stringify(text.slice(0, 100));
}

function refuse(what: string): A2AError {
  return new A2AError(
    "PermissionDenied",
    `This server does not answer ${what}: \`allowedHosts\` lists its host names, \`cors\` the pages that may call`,
  );
}

type Headers = UniversalResponse["headers"];

/** Which web pages of other origins may call (CORS). */
export interface CorsOptions {
  /** Origins such as `https://app.example.com`; `"*"` allows any. */
  readonly origins: "*" | readonly string[];
  /** Further request headers that pages may send, such as the header of an API key. Default: none. */
  readonly headers?: readonly string[];
  /** How long a browser may keep the permission, in seconds. Default 7200. */
  readonly maxAge?: number;
}

/** Headers and methods of one binding, in addition to the common headers and methods. */
export interface CorsHeaders {
  /** HTTP methods that pages may use, in the form of the header: `GET, POST`. */
  readonly methods: string;
  /** Further request headers that pages may send. */
  readonly requestHeaders: readonly string[];
  /** Further response headers that pages may read. */
  readonly exposedHeaders: readonly string[];
}

/** The CORS headers for a browser. */
export interface CorsPolicy {
  /** Headers of an answer to a page of this origin. */
  granted(origin: string | undefined): Headers;
  /** Headers of the answer to a preflight request. */
  preflight(origin: string | undefined): Headers;
  /** Whether pages of this origin must not read answers. A request without an origin does not come from a page. */
  refuses(origin: string | undefined): boolean;
}

const requestHeaders = [
  "content-type",
  "authorization",
  "dpop",
  "a2a-version",
  "a2a-extensions",
  "x-a2a-extensions",
  "last-event-id",
  "traceparent",
];
const exposedHeaders = ["a2a-extensions", "x-a2a-extensions", "www-authenticate", "dpop-nonce"];

/** Makes the CORS headers for the options of a server and the headers of a binding. Throws `InvalidParams` for an invalid origin. */
export function corsPolicy(options: CorsOptions | true, own: CorsHeaders): CorsPolicy {
  const { origins, headers = [], maxAge = 7200 }: CorsOptions = options === true ? { origins: "*" } : options;
  const any = origins === "*";
  if (!any) checkOrigins(origins);
  const allowed = new Set(any ? [] : origins);
  // If origins are listed, the answer depends on the origin, even for an origin that is not allowed.
  const vary: Headers = any ? {} : { vary: "Origin" };
  const exposed = [...exposedHeaders, ...own.exposedHeaders].join(", ");
  const permission: Headers = {
    "access-control-allow-methods": own.methods,
    "access-control-allow-headers": [...requestHeaders, ...own.requestHeaders, ...headers].join(", "),
    "access-control-max-age": String(maxAge),
  };
  const may = (origin: string | undefined): origin is string => origin !== undefined && (any || allowed.has(origin));
  const granted = (origin: string | undefined): Headers =>
    may(origin)
      ? { ...vary, "access-control-allow-origin": any ? "*" : origin, "access-control-expose-headers": exposed }
      : vary;
  return {
    granted,
    preflight: (origin) => (may(origin) ? { ...granted(origin), ...permission } : vary),
    refuses: (origin) => origin !== undefined && !may(origin),
  };
}

/** Rejects origins that no browser sends, which would silently allow nothing. */
function checkOrigins(origins: readonly string[]): void {
  if (!isArray(origins)) throw invalidOrigins('must be "*" or a list, such as ["https://app.example.com"]');
  for (const origin of origins) {
    const url = URL.canParse(origin) ? new URL(origin) : undefined;
    // `URL.origin` is "null" for the schemes of apps and browser extensions.
    const own = /^https?:$/.test(url?.protocol ?? "") ? url?.origin : /^[a-z][a-z\d+.-]*:\/\/[^/]+$/.exec(origin)?.[0];
    if (origin === own || origin === "null") continue;
    const cure =
      origin === "*" ? 'Set cors.origins to "*", not to a list' : `Write ${JSON.stringify(own ?? `https://${origin}`)}`;
    throw invalidOrigins(
      `has ${JSON.stringify(origin)}, which is not an origin (scheme, host and port, no path). ${cure}`,
    );
  }
}

function invalidOrigins(description: string): A2AError {
  return invalidParams([{ field: "cors.origins", description }], `This cannot be served: cors.origins ${description}`);
}

const http: CorsHeaders = {
  methods: "GET, HEAD, POST, DELETE",
  requestHeaders: ["if-none-match"],
  exposedHeaders: ["retry-after", "etag", "link", "x-total-count"],
};

/**
 * Adds CORS headers and answers preflight requests. If `options` is `undefined`, rejects every other origin. Calls `onRefused` for each
 * rejected request, and for requests of the server's own pages that send their origin.
 */
export function withCors(
  handler: UniversalHandler,
  options: CorsOptions | true | undefined,
  onRefused?: (request: UniversalRequest) => void,
): UniversalHandler {
  if (options === undefined) {
    if (onRefused === undefined) return handler;
    return (request) => {
      if (request.header("origin") !== undefined) onRefused(request);
      return handler(request);
    };
  }
  const policy = corsPolicy(options, http);

  const permit = (response: UniversalResponse, granted: Headers): UniversalResponse => {
    const varies = response.headers["vary"];
    const both = varies !== undefined && granted["vary"] !== undefined ? { vary: `${varies}, ${granted["vary"]}` } : {};
    return { ...response, headers: { ...response.headers, ...granted, ...both } };
  };

  return (request) => {
    const origin = request.header("origin");
    if (onRefused !== undefined && policy.refuses(origin)) onRefused(request);
    if (isPreflight(request)) return { status: 204, headers: policy.preflight(origin) };
    const granted = policy.granted(origin);
    const response = handler(request);
    if (Object.keys(granted).length === 0) return response;
    return response instanceof Promise ? response.then((each) => permit(each, granted)) : permit(response, granted);
  };
}

function isPreflight(request: UniversalRequest): boolean {
  return request.method === "OPTIONS" && request.header("access-control-request-method") !== undefined;
}
