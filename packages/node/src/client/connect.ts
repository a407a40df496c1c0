import type { AnyExtension } from "@parley/a2a/extensions";
import type {
  Client,
  ClientBinding,
  ConnectOptions,
  OlderCard,
  FetchInit,
  FetchLike,
} from "@parley/a2a/internal/client/index";
import type { AgentCard } from "@parley/a2a/internal/model/index";
import type { grpcBinding } from "@parley/grpc/client";
import { grpcName, optional } from "../defaults.ts";
import { nodeDialer, type DialerOptions } from "./dialer.ts";

/** Options of `connect()` on Node. */
export interface NodeConnectOptions<E extends string | AnyExtension = string> extends ConnectOptions<E> {
  /**
   * The client's certificate and key for mutual TLS schemes (A2A 1.0 §4.5.6), and the authorities to trust. All bindings present the
   * certificate, but only to origins that get credentials. Replaces `fetch`. Default: none.
   */
  readonly tls?: ClientTls;
}

/**
 * Like `connect` of `@parley/a2a`, but also calls over gRPC if `@parley/grpc` is installed: for `connect(agent, { binding: "GRPC" })`, and for
 * agents that speak only gRPC.
 *
 * @throws Error if the binding must be gRPC and `@parley/grpc` is not installed, in addition to the errors of `connect`.
 */
export async function connect<E extends string | AnyExtension = string>(
  agent: string | URL | AgentCard | OlderCard,
  given: NodeConnectOptions<E> = {},
): Promise<Client<Extract<E, AnyExtension>>> {
  // Loaded on demand, because a program that only serves does not need it.
  const client = await import("@parley/a2a/internal/client/index");
  const { tls, ...rest } = given;
  const origins = tls === undefined ? [] : originsOf(agent, rest);
  const options = tls === undefined ? rest : await withCertificate(rest, tls, origins);
  const { binding, bindings = [] } = options;
  if (binding !== undefined && binding !== "GRPC") return client.connect(agent, options);
  const grpc = await optional(grpcName, () => import("@parley/grpc/client"));
  if (grpc !== undefined) {
    const own = tls === undefined ? grpc.grpcBinding() : certifiedBinding(grpc.grpcBinding, tls, origins);
    return client.connect(agent, { ...options, bindings: [...bindings, own] });
  }
  if (binding === "GRPC" && bindings.length === 0) throw new Error(`To call by gRPC, install ${grpcName}`);
  return client.connect(agent, options);
}

/** Adds a `fetch` that presents the certificate, and a credential that tells the client that it has one. */
async function withCertificate<E extends string | AnyExtension>(
  options: ConnectOptions<E>,
  tls: ClientTls,
  origins: readonly string[],
): Promise<ConnectOptions<E>> {
  const { certificateCredential } = await import("@parley/a2a/credentials");
  const fetch = certificateFetch(tls, origins);
  // Without a client certificate, the connection only trusts other authorities.
  if (tls.cert === undefined) return { ...options, fetch };
  return { ...options, fetch, credentials: [...(options.credentials ?? []), certificateCredential()] };
}

/** The origins that get credentials, according to `credentialOrigins`. */
function originsOf(
  agent: string | URL | AgentCard | OlderCard,
  { credentialOrigins }: Pick<ConnectOptions, "credentialOrigins">,
): string[] {
  const named = typeof agent === "string" || agent instanceof URL ? [String(agent)] : [];
  const urls = [...named, ...(credentialOrigins ?? urlsOn(agent))];
  return urls.filter((url) => URL.canParse(url)).map((url) => new URL(url).origin);
}

function urlsOn(agent: string | URL | AgentCard | OlderCard): readonly string[] {
  if (typeof agent === "string" || !("supportedInterfaces" in agent)) return [];
  return agent.supportedInterfaces.map(({ url }) => url);
}

/** A gRPC binding that presents the certificate only to some origins. */
function certifiedBinding(make: typeof grpcBinding, tls: ClientTls, origins: readonly string[]): ClientBinding {
  const known = make(undefined, { tls });
  const { cert: _cert, key: _key, passphrase: _passphrase, ...open } = tls;
  const others = make(undefined, { tls: open });
  return {
    ...known,
    open(target, version, host, card) {
      const origin = known.origin?.(target.url, card) ?? "";
      return (origins.includes(origin) ? known : others).open(target, version, host, card);
    },
  };
}

/** A client certificate, and the authorities that a client trusts. */
export type ClientTls = NonNullable<DialerOptions["tls"]>;

/** A `fetch` that presents a client certificate only to some origins (mutual TLS, RFC 8705). */
function certificateFetch(tls: ClientTls, origins: readonly string[]): FetchLike {
  const { cert: _cert, key: _key, passphrase: _passphrase, ...open } = tls;
  const known = nodeDialer({ tls });
  const others = nodeDialer({ tls: open });
  return async (text, init) => {
    const url = new URL(text);
    const dialer = origins.includes(url.origin) ? known : others;
    return dialer.fetch(url, await dialer.resolve(url.hostname.replace(/^\[|\]$/g, "")), dialInit(init));
  };
}

/** The dialer does not follow redirects, because a certificate is only for the origin that the user named. Only gRPC-Web sends bytes. */
function dialInit({ method, headers, body, signal }: FetchInit) {
  if (body !== undefined && typeof body !== "string") throw new TypeError("Bytes cannot be sent with a certificate");
  return { method, headers, signal, ...(body !== undefined && { body }) };
}
