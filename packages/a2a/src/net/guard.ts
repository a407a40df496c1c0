import { untilAborted } from "../base/async.ts";
import { isLoopback, systemClock, type Clock } from "../base/index.ts";
import { A2AError } from "../model/index.ts";
import { addressKind, type AddressKind } from "./address.ts";
import type { Dialer, DialInit, GuardedFetch, NetPolicy, ResolvedAddress } from "./port.ts";

/**
 * Makes a `fetch` for untrusted URLs, such as URLs of webhooks, cards and files. It calls only public addresses, and none of
 * this machine or its network. With a dialer, it connects only to the addresses that it has checked. It never follows a
 * redirect, but returns it as the response.
 *
 * @param policy - Which addresses may be called. Default: public ones on the usual ports.
 * @param dialer - Pins addresses. Without a dialer, the runtime's `fetch` resolves the name again.
 * @param clock - Measures the timeout.
 *
 * @example
 * ```ts
 * const fetchFile = guardedFetch({ protocols: ["https:"] }, nodeDialer());
 * const response = await fetchFile(part.url);
 * ```
 */
export function guardedFetch(policy: NetPolicy = {}, dialer?: Dialer, clock: Clock = systemClock): GuardedFetch {
  const { maxBytes = 10 * 1024 * 1024, timeout = 10_000 } = policy;
  return async (text, init = {}) => {
    const target = checkTarget(text, policy);
    checkHeaders(init.headers ?? {});
    const limit = startLimit(timeout, init.signal, clock);
    try {
      const { signal } = limit;
      const answer =
        dialer === undefined
          ? plainFetch(target.url, { ...init, signal })
          : pinnedFetch(target, { ...init, signal }, dialer, policy);
      // The timeout also applies to a `fetch` that ignores its signal.
      const response = await untilAborted(answer, signal, (late) => void late.body?.cancel().catch(() => {}));
      return boundBody(response, maxBytes, limit);
    } catch (error) {
      limit.end();
      throw limit.explain(error);
    }
  };
}

/**
 * Why a URL must not be called; `undefined`: it may be called. Use it for a URL that is called later; `guardedFetch` then checks it again. Accepts a
 * name without an address, because it may get one later.
 *
 * @param text - The URL.
 * @param policy - Which addresses may be called. `timeout` limits the resolution of the name.
 * @param dialer - Resolves the name. Without one, only the URL itself is checked.
 * @param clock - Measures the timeout.
 */
export async function addressProblem(
  text: string,
  policy: NetPolicy = {},
  dialer?: Dialer,
  clock: Clock = systemClock,
): Promise<string | undefined> {
  const limit = startLimit(policy.timeout ?? 10_000, undefined, clock);
  try {
    const target = checkTarget(text, policy);
    if (dialer !== undefined) await resolve(target, dialer, policy, limit.signal);
    return undefined;
  } catch (error) {
    return error instanceof RefusedAddress ? error.reason : undefined;
  } finally {
    limit.end();
  }
}

interface Target {
  readonly url: URL;
  /** Name or address, without brackets and trailing dots. */
  readonly host: string;
  /** Whether the policy names this host, so that its addresses are not checked. */
  readonly allowed: boolean;
}

const defaultProtocols: readonly string[] = ["https:", "http:"];

/**
 * Names with a meaning only inside a machine or a network (RFC 6761, RFC 6762 with its appendix G, RFC 8375, ICANN's `.internal`), and
 * names of services in a cluster.
 */
const internalName = /(^|\.)(localhost|localdomain|local|internal|intranet|private|corp|home|lan|svc|home\.arpa)$/;

function checkTarget(text: string, policy: NetPolicy): Target {
  if (!URL.canParse(text)) throw refused("it is not an absolute URL");
  const url = new URL(text);
  if (!(policy.protocols ?? defaultProtocols).includes(url.protocol)) throw refused(`${url.protocol} is not allowed`);
  if (url.username !== "" || url.password !== "") throw refused("a URL with a user name or password is not allowed");
  // Removes trailing dots, which make the parser treat an address as a name: `127.0.0.1..`.
  const { hostname } = url;
  let end = hostname.length;
  while (hostname[end - 1] === ".") end -= 1;
  url.hostname = hostname.slice(0, end);
  // The URL parser has normalized every spelling of an IPv4 address (decimal, octal, short).
  const host = url.hostname.replace(/^\[|\]$/g, "");
  const port = url.port === "" ? (url.protocol === "https:" ? 443 : 80) : Number(url.port);
  const allowed = isAllowed(url.hostname, host, port, policy.allow ?? []);
  if (!allowed) {
    const known = policy.ports?.includes(port) ?? (port === 80 || port === 443 || port >= 1024);
    if (!known) throw refused(`port ${port} is not allowed`);
    const kind = addressKind(host);
    const hint = isLoopback(host) ? localHint : "";
    if (kind !== undefined && !passes(kind, policy)) throw refused(`${host} is ${described[kind]}`, undefined, hint);
    const internal = kind === undefined && (internalName.test(host) || !host.includes("."));
    const isOwn = policy.allowLoopback === true && isLoopback(host);
    if (internal && !isOwn && policy.allowPrivate !== true)
      throw refused(`${host} is a name of an internal network`, undefined, hint);
  }
  return { url, host, allowed };
}

function isAllowed(hostname: string, host: string, port: number, allow: readonly string[]): boolean {
  const names = [host, hostname, `${hostname}:${port}`];
  return allow.some((entry) => names.includes(entry.toLowerCase()));
}

function passes(kind: AddressKind, { allowPrivate = false, allowLoopback = false }: NetPolicy): boolean {
  if (allowLoopback && kind === "loopback") return true;
  return kind === "global" || (allowPrivate && (kind === "loopback" || kind === "private" || kind === "link-local"));
}

const described: Readonly<Record<AddressKind, string>> = {
  global: "a public address",
  loopback: "a loopback address",
  private: "a private address",
  "link-local": "a link-local address",
  unspecified: "an unspecified address",
  multicast: "a multicast address",
  documentation: "an address for documentation",
  reserved: "a reserved address",
};

class RefusedAddress extends A2AError {
  declare readonly reason: string;

  constructor(reason: string, cause?: unknown, hint = "") {
    super("InvalidParams", `Address refused: ${reason}${hint}`, { cause });
    this.reason = reason;
  }
}

function refused(reason: string, cause?: unknown, hint?: string): RefusedAddress {
  return new RefusedAddress(reason, cause, hint);
}

/** Only in the error of `guardedFetch`; remote callers get only the reason. */
const localHint = "; for local work, pass { allowLoopback: true } to guardedFetch()";

const token = /^[\w!#$%&'*+.^`|~-]+$/;
/** Tabs and visible characters. A line break would start another header (RFC 9110 §5.5). */
const fieldValue = /^[\t\x20-\x7e\x80-\xff]*$/;
/** Headers that the connection sets: framing and routing. */
const reservedHeaders: readonly string[] = [
  "connection",
  "content-length",
  "host",
  "keep-alive",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
];

function checkHeaders(headers: Readonly<Record<string, string>>): void {
  for (const [name, value] of Object.entries(headers)) {
    if (!token.test(name)) throw new A2AError("InvalidParams", `${JSON.stringify(name)} cannot name a header`);
    if (!fieldValue.test(value))
      throw new A2AError("InvalidParams", `Header ${name} has characters that are not allowed`);
    if (reservedHeaders.includes(name.toLowerCase()))
      throw new A2AError("InvalidParams", `Header ${name} may not be set`);
  }
}

async function plainFetch(url: URL, { method = "GET", headers = {}, body, signal }: DialInit): Promise<Response> {
  return fetch(url, { method, headers, body: body ?? null, signal: signal ?? null, redirect: "manual" });
}

async function pinnedFetch(target: Target, init: DialInit, dialer: Dialer, policy: NetPolicy): Promise<Response> {
  const addresses = await resolve(target, dialer, policy, init.signal);
  return dialer.fetch(target.url, addresses, init);
}

async function resolve(
  { host, allowed }: Target,
  dialer: Dialer,
  policy: NetPolicy,
  signal?: AbortSignal,
): Promise<readonly ResolvedAddress[]> {
  if (addressKind(host) !== undefined) return [{ address: host, family: host.includes(":") ? 6 : 4 }];
  const addresses = await untilAborted(dialer.resolve(host), signal);
  if (addresses.length === 0) throw new A2AError("ConnectionFailed", `${host} has no address`);
  if (allowed) return addresses;
  for (const { address } of addresses) {
    const kind = addressKind(address) ?? "reserved";
    // The address goes into the cause, for the operator's log. The caller must not learn about an internal network.
    const cause = new Error(`${host} resolves to ${address}, ${described[kind]}`);
    if (!passes(kind, policy)) throw refused(`${host} resolves to an address that is not public`, cause);
  }
  return addresses;
}

/** The response with a limited body, which fails after more than `maxBytes`. `limit` ends with the body. */
function boundBody(response: Response, maxBytes: number, limit: Limit): Response {
  // Browsers hide the status and the target of a redirect.
  if (response.type === "opaqueredirect") throw new A2AError("InvalidResponse", "The answer is a redirect");
  const { status, statusText, headers, body } = response;
  if (body === null) {
    limit.end();
    return response;
  }
  if (Number(headers.get("content-length")) > maxBytes) {
    void body.cancel();
    throw tooLarge(maxBytes);
  }
  const bounded = bound(body.getReader(), maxBytes, limit);
  try {
    return new Response(bounded, { status, statusText, headers });
  } catch (error) {
    // Some `fetch` implementations return responses that the constructor rejects, such as one with the status 999.
    bounded.cancel().catch(() => {});
    throw error;
  }
}

function bound(
  reader: ReadableStreamDefaultReader<Uint8Array>,
  maxBytes: number,
  limit: Limit,
): ReadableStream<Uint8Array> {
  let size = 0;
  return new ReadableStream<Uint8Array>({
    start(controller) {
      // This also ends a body that ignores the signal.
      limit.signal.addEventListener("abort", () => {
        controller.error(limit.signal.reason);
        reader.cancel().catch(() => {});
      });
    },
    async pull(controller) {
      try {
        const { done, value } = await reader.read();
        if (done) {
          limit.end();
          controller.close();
          return;
        }
        size += value.byteLength;
        if (size > maxBytes) throw tooLarge(maxBytes);
        controller.enqueue(value);
      } catch (error) {
        limit.end();
        controller.error(limit.explain(error));
        // The rest is not read. An error of the stream itself has been reported already.
        reader.cancel().catch(() => {});
      }
    },
    cancel(reason) {
      limit.end();
      return reader.cancel(reason);
    },
  });
}

function tooLarge(maxBytes: number): A2AError {
  return new A2AError("InvalidResponse", `The answer is larger than ${maxBytes} bytes`);
}

/* Ends an outgoing call: by its timeout or its caller. */

/** A timeout and the signal of the caller, as one signal. */
interface Limit {
  readonly signal: AbortSignal;
  explain(error: unknown): A2AError;
  /** Stops the timer at the end of the call. */
  end(): void;
}

function startLimit(timeout: number, caller: AbortSignal | undefined, clock: Clock): Limit {
  const controller = new AbortController();
  const { signal } = controller;
  const stop = clock.after(timeout, () => controller.abort(new A2AError("Timeout", `No answer within ${timeout} ms`)));
  const abort = (): void => controller.abort(new A2AError("Aborted", undefined, { cause: caller?.reason }));
  if (caller?.aborted === true) abort();
  caller?.addEventListener("abort", abort, { once: true });
  return {
    signal,
    explain(error) {
      if (signal.aborted && signal.reason instanceof A2AError) return signal.reason;
      return error instanceof A2AError ? error : new A2AError("ConnectionFailed", undefined, { cause: error });
    },
    end() {
      stop();
      caller?.removeEventListener("abort", abort);
    },
  };
}
