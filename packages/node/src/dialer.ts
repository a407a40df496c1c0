import { lookup } from "node:dns/promises";
import { request as httpRequest, type IncomingMessage } from "node:http";
import { request as httpsRequest, type RequestOptions } from "node:https";
import type { LookupFunction } from "node:net";
import { Readable } from "node:stream";
import type { Dialer, DialInit, ResolvedAddress } from "@parley/a2a/net";

/** Options of `nodeDialer()`. */
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

/** More of them before an answer are no part of a conversation: a server may send any number (RFC 9110 §15.2). */
const mostInformation = 16;

/** Settles whatever the server does: each way that an exchange can end rejects or resolves, and none throws out of a callback. */
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

/** A resolver that knows one answer. Literal addresses are never looked up; the guard hands them on as they are. */
function pinned(addresses: readonly ResolvedAddress[]): LookupFunction {
  return (_hostname, { all }, callback) => {
    const [first] = addresses;
    if (all === true) callback(null, [...addresses]);
    else callback(null, first?.address ?? "", first?.family);
  };
}

/** What a `Response` takes (RFC 9110 §15). A reason phrase that holds anything else is left out: it means nothing to a client. */
const reason = /^[\t\x20-\x7e\x80-\xff]*$/;

/** Bytes that wait for their reader; beyond them the server waits. Left to itself, Node lets 16,384 pieces wait. */
const waiting = new ByteLengthQueuingStrategy({ highWaterMark: 64 * 1024 });

/** Throws where the answer cannot be shown as a `Response`. */
function toResponse(incoming: IncomingMessage, method: string): Response {
  const { statusCode: status = 0, statusMessage = "", rawHeaders } = incoming;
  if (status < 200 || status > 599) throw new Error(`The server answered with the status ${status}, which is none`);
  const statusText = reason.test(statusMessage) ? statusMessage : "";
  const headers = new Headers();
  for (let index = 0; index < rawHeaders.length; index += 2) {
    headers.append(rawHeaders[index] ?? "", rawHeaders[index + 1] ?? "");
  }
  if (method === "HEAD" || status === 204 || status === 205 || status === 304) {
    // Whatever is sent all the same is not waited for.
    incoming.on("error", () => {}).destroy();
    return new Response(null, { status, statusText, headers });
  }
  const body = Readable.toWeb(incoming, { strategy: waiting }) as ReadableStream<Uint8Array>;
  return new Response(body, { status, statusText, headers });
}
