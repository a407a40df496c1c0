import { lookup } from "node:dns/promises";
import { request as httpRequest, type IncomingMessage } from "node:http";
import { request as httpsRequest, type RequestOptions } from "node:https";
import type { LookupFunction } from "node:net";
import { Readable } from "node:stream";
import type { Dialer, DialInit, ResolvedAddress } from "@parley/a2a/net";

export interface DialerOptions {
  /** How names become addresses. Default: the system's resolver, which reads `/etc/hosts` too. */
  readonly resolve?: Dialer["resolve"];
  /** Certificates to trust, and whatever else `node:https` takes for a connection. */
  readonly tls?: Pick<RequestOptions, "ca" | "cert" | "key" | "minVersion">;
}

/**
 * Opens connections to exactly the addresses that the guard has checked: a name that points elsewhere a moment later
 * (DNS rebinding) changes nothing. Each call has a connection of its own, so none that was checked under another policy
 * is taken up again. The host name stays what the server is asked for and what its certificate must show.
 */
export function nodeDialer(options: DialerOptions = {}): Dialer {
  return {
    resolve: options.resolve ?? resolveBySystem,
    fetch: (url, addresses, init) => dial(url, addresses, init, options.tls ?? {}),
  };
}

async function resolveBySystem(hostname: string): Promise<readonly ResolvedAddress[]> {
  const found = await lookup(hostname, { all: true });
  return found.map(({ address, family }) => ({ address, family: family === 6 ? 6 : 4 }));
}

function dial(
  url: URL,
  addresses: readonly ResolvedAddress[],
  { method = "GET", headers = {}, body, signal }: DialInit,
  tls: RequestOptions,
): Promise<Response> {
  return new Promise((resolve, reject) => {
    const send = url.protocol === "https:" ? httpsRequest : httpRequest;
    const request = send(url, {
      ...tls,
      method,
      // What is not compressed cannot swell beyond the bound on its size.
      headers: { "accept-encoding": "identity", ...headers },
      lookup: pinned(addresses),
      agent: false,
      ...(signal === undefined ? {} : { signal }),
    });
    request.on("error", reject);
    request.on("response", (incoming) => resolve(toResponse(incoming, method)));
    request.end(body);
  });
}

/** A resolver that knows one answer. Literal addresses are never looked up; the guard hands them on as they are. */
function pinned(addresses: readonly ResolvedAddress[]): LookupFunction {
  return (_hostname, { all }, callback) => {
    const [first] = addresses;
    if (all === true) callback(null, [...addresses]);
    else callback(null, first?.address ?? "", first?.family);
  };
}

function toResponse(incoming: IncomingMessage, method: string): Response {
  const { statusCode: status = 0, statusMessage: statusText = "", rawHeaders } = incoming;
  const headers = new Headers();
  for (let index = 0; index < rawHeaders.length; index += 2) {
    headers.append(rawHeaders[index] ?? "", rawHeaders[index + 1] ?? "");
  }
  const bodiless = method === "HEAD" || status === 204 || status === 205 || status === 304;
  if (bodiless) incoming.resume();
  const body = bodiless ? null : (Readable.toWeb(incoming) as ReadableStream<Uint8Array>);
  return new Response(body, { status, statusText, headers });
}
