import { A2AError } from "@parley/a2a/internal/model/index";
import type { Handler } from "@parley/server/internal/handler";
import type {
  BodyWriter,
  ByteFlow,
  RequestFacts,
  UniversalHandler,
  UniversalRequest,
  UniversalResponse,
} from "@parley/a2a/internal/protocol/index";
import { isBodiless, type Exchange } from "./exchange.ts";

/* The option `routes` of a server: what the application answers beside the agents. */

/** Answers a request of the application; `undefined`: it has nothing there. */
export type Routes = (request: Request, facts: RequestFacts) => Response | undefined | Promise<Response | undefined>;

/** What the routes of an application need of the server. */
export interface RoutesHost {
  readonly handler: Pick<Handler, "handle" | "answers" | "claims" | "host">;
  /** The public URL, whose origin the requests have: never that of a header. */
  readonly publicUrl: string;
}

/**
 * Asks the routes of the application about what belongs to no agent. The rules for hosts and pages hold for them, too, and the limit of
 * bodies.
 */
export function withRoutes(routes: Routes, { handler, publicUrl }: RoutesHost): UniversalHandler {
  const { origin } = new URL(publicUrl);
  const { host, handle } = handler;
  return async (request) => {
    if (handler.answers(request.url) || handler.claims(request) || !isAdmitted(host, request)) return handle(request);
    const limit = host.limits.bodyBytes;
    if (Number(request.header("content-length") ?? 0) > limit) return tooLarge;
    const body = new Body(request, limit);
    // The requests of a server of this package are exchanges.
    const asked = requestOf(request as Exchange, origin, body);
    if (asked === undefined) return handle(request);
    try {
      const response = await routes(asked, request.facts ?? {});
      return response === undefined ? await handle(request) : answerOf(response);
    } catch (thrown) {
      if (body.isTooLarge) return tooLarge;
      throw thrown;
    }
  };
}

const tooLarge: UniversalResponse = {
  status: 413,
  headers: { "content-type": "application/json", "cache-control": "no-store" },
  body: '{"error":{"code":413,"status":"INVALID_ARGUMENT","message":"Request body too large"}}',
};

function isAdmitted({ admit }: Handler["host"], request: UniversalRequest): boolean {
  try {
    admit?.(request);
    return true;
  } catch {
    // The handler refuses it, with an error.
    return false;
  }
}

/** `undefined`: a method that no `Request` can have, such as TRACE. */
function requestOf(exchange: Exchange, origin: string, body: Body): Request | undefined {
  const { method, url, signal } = exchange;
  if (/^(?:CONNECT|TRACE|TRACK)$/i.test(method)) return undefined;
  const headers = new Headers();
  for (const [name, value] of exchange.fields()) headers.append(name, value);
  const hasBody = method !== "GET" && method !== "HEAD";
  return new Request(origin + url, {
    method,
    headers,
    signal,
    ...(hasBody && { body: body.stream, duplex: "half" as const }),
  });
}

/** The body of a request. Nothing of it is read before the application reads. */
class Body {
  isTooLarge = false;
  readonly #request: UniversalRequest;
  readonly #limit: number;
  #bytes = 0;

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
        cancel: () => flow?.pause(),
      },
      // Without a buffer of its own: each piece waits until it is read.
      { highWaterMark: 0 },
    );
  }

  #read(controller: ReadableStreamDefaultController<Uint8Array>, pause: () => void): ByteFlow | undefined {
    let open = true;
    const end = (run: () => void): void => {
      if (open) run();
      open = false;
    };
    return this.#request.read?.({
      chunk: (bytes) => {
        this.#bytes += bytes.byteLength;
        this.isTooLarge = this.#bytes > this.#limit;
        if (this.isTooLarge) end(() => controller.error(new A2AError("RequestTooLarge")));
        else if (open) controller.enqueue(bytes);
        pause();
      },
      end: () => end(() => controller.close()),
      gone: () => end(() => controller.error(new A2AError("InvalidRequest", "The request body broke off"))),
    });
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
  // JavaScript callers can return anything. A framework may have a class of its own.
  if (typeof response?.status !== "number" || typeof response.headers?.getSetCookie !== "function") {
    throw new TypeError("The option `routes` must return a Response, or undefined where it has no answer");
  }
  if (response.bodyUsed || response.body?.locked === true) {
    throw new TypeError(
      "The option `routes` has returned a Response whose body was read already. Return a new one for each request",
    );
  }
  const { status, body } = response;
  const headers: Record<string, string> = {};
  for (const [name, value] of response.headers) if (!ofConnection.has(name)) headers[name] = value;
  const cookies = response.headers.getSetCookie();
  // Node writes a list as several headers, which cookies have to be (RFC 6265 §3).
  if (cookies.length > 1) Object.assign(headers, { "set-cookie": cookies });
  return { status, headers, ...(body !== null && !isBodiless(status) && { body: writerOf(body) }) };
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
