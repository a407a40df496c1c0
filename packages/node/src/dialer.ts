import { lookup } from "node:dns/promises";
import { request as httpRequest, type IncomingMessage } from "node:http";
import { request as httpsRequest, type RequestOptions } from "node:https";
import type { LookupFunction } from "node:net";
import { Readable } from "node:stream";
import type { Dialer, DialInit, ResolvedAddress } from "@parley/a2a/net";

/** Options of `nodeDialer()`. */
export interface DialerOptions {
  /** Resolves host names. Default: the resolver of the system, which also reads `/etc/hosts`. */
  readonly resolve?: Dialer["resolve"];
  /** Certificates to trust, and further TLS options of `node:https`. */
  readonly tls?: Pick<RequestOptions, "ca" | "cert" | "key" | "minVersion">;
}

/**
 * Opens connections to exactly the addresses that the guard has checked, so that a name that resolves to another address a
 * moment later (DNS rebinding) changes nothing. Each call has a connection of its own: none is reused that was checked under
 * another policy. The `Host` header and the check of the certificate use the host name.
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

/** Most interim answers before an answer. HTTP has no limit (RFC 9110 §15.2). */
const mostInformation = 16;

/** Sends a request. The promise settles however the exchange ends, and nothing is thrown from a callback. */
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
      // A compressed answer could exceed the limit on its size when it is decompressed.
      headers: { "accept-encoding": "identity", ...headers },
      lookup: pinned(addresses),
      agent: false,
      ...(signal === undefined ? {} : { signal }),
    });
    const refuse = (error: unknown): void => {
      reject(error instanceof Error ? error : new Error(String(error)));
      request.destroy();
    };
    let information = 0;
    request.on("error", reject);
    request.on("close", () => reject(new Error("The server closed the connection before it answered")));
    request.on("information", () => {
      if (++information > mostInformation) refuse(new Error("The server sent only interim answers"));
    });
    request.on("upgrade", (_incoming, socket) => {
      socket.destroy();
      refuse(new Error("The server wants to speak another protocol"));
    });
    request.on("response", (incoming) => {
      try {
        resolve(toResponse(incoming, method));
      } catch (error) {
        incoming.on("error", () => {});
        refuse(error);
      }
    });
    request.end(body);
  });
}

/** A resolver that always returns the same addresses. Node does not look up literal addresses; the guard passes them unchanged. */
function pinned(addresses: readonly ResolvedAddress[]): LookupFunction {
  return (_hostname, { all }, callback) => {
    const [first] = addresses;
    if (all === true) callback(null, [...addresses]);
    else callback(null, first?.address ?? "", first?.family);
  };
}

/** Reason phrases that `Response` accepts. Others are left out: they have no meaning to a client (RFC 9110 §15). */
const reason = /^[\t\x20-\x7e\x80-\xff]*$/;

/** Bytes that wait for their reader before reading stops. Node's default is 16,384 pieces of any size. */
const waiting = new ByteLengthQueuingStrategy({ highWaterMark: 64 * 1024 });

/** The answer as a `Response`. Throws where that is not possible. */
function toResponse(incoming: IncomingMessage, method: string): Response {
  const { statusCode: status = 0, statusMessage = "", rawHeaders } = incoming;
  if (status < 200 || status > 599) throw new Error(`The server answered with the invalid status ${status}`);
  const statusText = reason.test(statusMessage) ? statusMessage : "";
  const headers = new Headers();
  for (let index = 0; index < rawHeaders.length; index += 2) {
    headers.append(rawHeaders[index] ?? "", rawHeaders[index + 1] ?? "");
  }
  if (method === "HEAD" || status === 204 || status === 205 || status === 304) {
    // Such an answer has no body. Bytes that are sent anyway are not read.
    incoming.on("error", () => {}).destroy();
    return new Response(null, { status, statusText, headers });
  }
  const body = Readable.toWeb(incoming, { strategy: waiting }) as ReadableStream<Uint8Array>;
  return new Response(body, { status, statusText, headers });
}
