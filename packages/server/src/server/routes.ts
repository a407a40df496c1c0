import type { ServedAgent } from "./options.ts";
import { A2AError, invalidParams } from "@parley/a2a/internal/model/index";
import { withoutQuery } from "@parley/a2a/internal/base/index";
import {
  anonymous,
  isOfOtherPage,
  type BodyWriter,
  type ByteFlow,
  type Principal,
  type UniversalHandler,
  type UniversalRequest,
  type UniversalResponse,
} from "@parley/a2a/internal/protocol/index";
import { notFound } from "@parley/a2a/internal/transport/discovery/handler";
import { pathBelow, type HttpEndpoint } from "@parley/a2a/internal/transport/server/binding";
import { errorResponse, failureOf } from "@parley/a2a/internal/transport/server/response";
import { accepting } from "./cards.ts";
import type { Callers } from "./services.ts";
import { originsOf, type HostSettings } from "./settings.ts";

/* The option `routes` of a host: routes and pages of the application. */

/**
 * The routes of a host, by their paths. `undefined`: no routes.
 *
 * @param agentsFor - The agents whose cards the sender of a request may read.
 */
export function routesOf(
  { options, publicUrl, basePath, codecs, limits, logger, closing, open }: HostSettings,
  callers: Callers,
  agentsFor: (request: UniversalRequest) => Promise<readonly ServedAgent[]>,
): ReadonlyMap<string, HttpEndpoint> | undefined {
  const { routes, authenticator, cors = false } = options;
  if (routes === undefined || typeof routes === "function") return undefined;
  const known = callers.guard(accepting, { url: publicUrl, card: { skills: [] }, description: {} });
  const origins = originsOf(cors);
  const found = new Map<string, HttpEndpoint>();
  const counted = async <T>(work: () => Promise<T>): Promise<T> => {
    open.begin();
    try {
      return await work();
    } finally {
      open.end();
    }
  };
  const callerOf = async (request: UniversalRequest): Promise<Principal> => {
    const principal = await callers.admitted(request);
    await known.call("GetExtendedAgentCard", {}, { principal, version: "", extensions: [] });
    return principal;
  };
  for (const { path: own, access = "authenticated", answer } of routes) {
    const path = basePath + own;
    if (found.has(path)) throw invalidParams([{ field: "routes", description: `has the path ${own} twice` }]);
    const respond = async (request: UniversalRequest): Promise<UniversalResponse> => {
      const { method, facts = {} } = request;
      if (!/^(?:GET|HEAD|OPTIONS)$/.test(method) && isOfOtherPage(request, publicUrl)) {
        if (origins !== "*" && !origins.includes(request.header("origin") ?? "")) {
          throw new A2AError("PermissionDenied", "Pages of other origins may not call this: see `cors`");
        }
      }
      const isOpen = access === "anyone" || authenticator === undefined;
      const principal = isOpen ? anonymous : await callerOf(request);
      const agents = (): Promise<readonly ServedAgent[]> => agentsFor(request);
      const context = { principal, facts, closing: closing.signal, agents, page: pageOf };
      const answered = await answerBy(request, publicUrl, limits.bodyBytes, (asked) => {
        // `Request` resolves dot segments, so its URL may be outside of the route.
        const below = pathBelow(new URL(asked.url).pathname, path);
        return below === undefined ? undefined : answer(asked, { ...context, below });
      });
      if (answered === undefined) return notFound(codecs[0]);
      const { body } = answered;
      return {
        ...answered,
        headers: { ...secured(answered.headers, isOpen), ...answered.headers },
        ...(typeof body === "function" && { body: (sink) => counted(() => body(sink)) }),
      };
    };
    found.set(path, {
      answer: (request) =>
        counted(() => respond(request)).catch((thrown: unknown) => {
          const fields = { url: withoutQuery(request.url) };
          return errorResponse(
            codecs[0],
            failureOf(thrown, logger, fields, () => request.signal.aborted),
          );
        }),
    });
  }
  return found;
}

async function pageOf(title: string, content: string): Promise<Response> {
  const { frame, pageHeaders } = await import("../page/index.ts");
  return new Response(frame(title, `<main>${content}</main>`), { headers: await pageHeaders() });
}

/** Default headers of an answer: no framing, no MIME sniffing, no shared caching. */
function secured(headers: UniversalResponse["headers"], isOpen: boolean): Record<string, string> {
  const isPage = String(headers["content-type"] ?? "").startsWith("text/html");
  return {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    ...(isPage && {
      "content-security-policy": "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    }),
    ...(!isOpen && { "cache-control": "private, no-store" }),
  };
}

/** The handler's answers to the routes about its agents. */
interface Around {
  answers(url: string): boolean;
  claims(request: UniversalRequest): boolean;
  readonly admit?: ((request: UniversalRequest) => void) | undefined;
}

/**
 * Passes requests for unknown paths to the application's function. The checks of host and origin, and the limit of bodies, apply to it,
 * too.
 */
export function besideRoutes(handle: UniversalHandler, settings: HostSettings, around: Around): UniversalHandler {
  const { options, publicUrl, limits } = settings;
  const { routes } = options;
  if (typeof routes !== "function") return handle;
  return async (request) => {
    if (around.answers(request.url) || around.claims(request) || !isAdmitted(around, request)) return handle(request);
    const own = await answerBy(request, publicUrl, limits.bodyBytes, (asked) => routes(asked, request.facts ?? {}));
    return own ?? handle(request);
  };
}

function isAdmitted({ admit }: Around, request: UniversalRequest): boolean {
  try {
    admit?.(request);
    return true;
  } catch {
    // The handler rejects it with an error.
    return false;
  }
}

const tooLarge: UniversalResponse = {
  status: 413,
  headers: { "content-type": "application/json", "cache-control": "no-store" },
  body: '{"error":{"code":413,"status":"INVALID_ARGUMENT","message":"Request body too large"}}',
};

/** Calls the application. `undefined`: it has no answer, or a `Request` cannot have the method, such as TRACE. */
export async function answerBy(
  request: UniversalRequest,
  publicUrl: string,
  limit: number,
  answer: (asked: Request) => Response | undefined | Promise<Response | undefined>,
): Promise<UniversalResponse | undefined> {
  if (Number(request.header("content-length") ?? 0) > limit) return tooLarge;
  const body = new Body(request, limit);
  const asked = requestOf(request, new URL(publicUrl).origin, body);
  if (asked === undefined) return undefined;
  try {
    const response = await answer(asked);
    return response === undefined ? undefined : answerOf(response);
  } catch (thrown) {
    if (body.isTooLarge) return tooLarge;
    throw thrown;
  }
}

function requestOf(request: UniversalRequest, origin: string, body: Body): Request | undefined {
  const { method, url, signal } = request;
  if (/^(?:CONNECT|TRACE|TRACK)$/i.test(method)) return undefined;
  const headers = new Headers();
  for (const [name, value] of request.fields?.() ?? []) headers.append(name, value);
  const hasBody = method !== "GET" && method !== "HEAD";
  const init = { method, headers, signal, ...(hasBody && { body: body.stream, duplex: "half" as const }) };
  return new Request(origin + url, init);
}

/** The body of a request, which is received only when the application reads it. */
class Body {
  isTooLarge = false;
  readonly #request: UniversalRequest;
  readonly #limit: number;
  #bytes = 0;
  #isOpen = true;

  constructor(request: UniversalRequest, limit: number) {
    this.#request = request;
    this.#limit = limit;
  }

  get stream(): ReadableStream<Uint8Array> {
    let flow: ByteFlow | undefined;
    return new ReadableStream<Uint8Array>(
      {
        pull: (controller) => {
          flow ??= this.#read(controller, () => flow?.pause());
          flow?.resume();
        },
        // The host receives the rest of the body after the answer.
        cancel: () => this.#end(() => flow?.pause()),
      },
      // No buffer: each piece waits until it is read.
      { highWaterMark: 0 },
    );
  }

  #read(controller: ReadableStreamDefaultController<Uint8Array>, pause: () => void): ByteFlow | undefined {
    return this.#request.read?.({
      chunk: (bytes) => {
        if (!this.#isOpen) return;
        this.#bytes += bytes.byteLength;
        this.isTooLarge = this.#bytes > this.#limit;
        if (this.isTooLarge) this.#end(() => controller.error(new A2AError("RequestTooLarge")));
        else controller.enqueue(bytes);
        pause();
      },
      end: () => this.#end(() => controller.close()),
      gone: () => this.#end(() => controller.error(new A2AError("InvalidRequest", "The request body broke off"))),
    });
  }

  #end(run: () => void): void {
    if (this.#isOpen) run();
    this.#isOpen = false;
  }
}

/** Headers of a connection, which the server writes itself (RFC 9110 §7.6.1). */
const ofConnection: ReadonlySet<string> = new Set([
  "connection",
  "keep-alive",
  "proxy-connection",
  "transfer-encoding",
  "upgrade",
]);

function answerOf(response: Response): UniversalResponse {
  // JavaScript callers can return anything. A framework may have its own class.
  if (typeof response?.status !== "number" || typeof response.headers?.getSetCookie !== "function") {
    throw new TypeError("The option `routes` must return a Response, or undefined if it has no answer");
  }
  if (response.bodyUsed || response.body?.locked === true) {
    throw new TypeError(
      "The option `routes` has returned a Response whose body was already read. Return a new one for each request",
    );
  }
  const { status, body } = response;
  const headers: Record<string, string> = {};
  for (const [name, value] of response.headers) if (!ofConnection.has(name)) headers[name] = value;
  const cookies = response.headers.getSetCookie();
  // Node writes a list as several headers, as cookies require (RFC 6265 §3).
  if (cookies.length > 1) Object.assign(headers, { "set-cookie": cookies });
  return { status, headers, ...(body !== null && status !== 204 && status !== 304 && { body: writerOf(body) }) };
}

function writerOf(body: ReadableStream<Uint8Array>): BodyWriter {
  return async (sink) => {
    const reader = body.getReader();
    sink.onClose(() => void reader.cancel().catch(() => {}));
    for (;;) {
      const { done, value } = await reader.read();
      if (done || sink.closed) return;
      if (!sink.write(value)) await sink.ready();
    }
  };
}
