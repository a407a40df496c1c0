/**
 * gRPC for clients.
 * @packageDocumentation
 */

import type { OutgoingHttpHeaders } from "node:http2";
import { gzipSync } from "node:zlib";
import { A2AError } from "@parley/a2a/model";
import type { ClientBinding, ClientHost } from "@parley/a2a/internal/transport/client/binding";
import type { Codec } from "@parley/a2a/internal/wire/codec";
import { codecV11, wires } from "@parley/a2a/internal/wires";
import { compressed, frameOf } from "../frames.ts";
import { formatTimeout } from "../metadata.ts";
import { begin, Channel, type ChannelOptions } from "./call.ts";
import { bindingOver, type Transport } from "./service.ts";

/** Options of gRPC at a client. */
export interface GrpcBindingOptions extends ChannelOptions {
  /** Compresses requests with gzip above this many bytes. Default: never, because not every server can decompress. */
  readonly compressAbove?: number;
}

/**
 * The gRPC binding of a client (A2A 1.0 §10 and 0.3): `connect(agent, { bindings: [grpcBinding()] })`. All clients with
 * this binding share one connection per address.
 *
 * `idleTimeout` does not apply, because an idle gRPC stream sends nothing. See `keepAlive`.
 *
 * @param codecs - The versions to speak. Default: all.
 */
export function grpcBinding(
  codecs: readonly Codec[] = [...Object.values(wires), codecV11],
  options: GrpcBindingOptions = {},
): ClientBinding {
  const channels = new Map<string, Channel>();
  return bindingOver(codecs, (origin, url, host) => {
    const channel = channels.get(origin) ?? new Channel(origin, options);
    channels.set(origin, channel);
    const { compressAbove = Infinity } = options;
    return overHttp2({ channel, origin, compressAbove }, url, host);
  });
}

interface Http2 {
  readonly channel: Channel;
  readonly origin: string;
  readonly compressAbove: number;
}

function overHttp2({ channel, origin, compressAbove }: Http2, url: string, host: ClientHost): Transport {
  const { clock, limits } = host;
  return async ({ path, metadata, message, context, headTimeout }) => {
    const target = { method: "POST", url: origin + path, headers: {} };
    const sent = await host.credentials?.add(target, context.signal);
    if (sent !== undefined && sent.url !== target.url)
      throw new A2AError("InvalidParams", "An API key in the query cannot be sent by gRPC, which has no query");
    const compresses = message.length > compressAbove;
    const headers: OutgoingHttpHeaders = {
      ":method": "POST",
      ":path": path,
      "content-type": "application/grpc+proto",
      te: "trailers",
      "grpc-accept-encoding": "gzip,deflate,identity",
      ...metadata,
      ...sent?.headers,
    };
    if (compresses) headers["grpc-encoding"] = "gzip";
    if (headTimeout !== false) headers["grpc-timeout"] = formatTimeout(headTimeout);
    return begin(channel, headers, compresses ? frameOf(gzipSync(message), compressed) : frameOf(message), {
      url,
      clock,
      signal: context.signal,
      connectTimeout: context.outgoing?.connectTimeout ?? limits.connectTimeout,
      headTimeout,
      maxMessageBytes: limits.maxResponseBytes,
    });
  };
}
