import { X509Certificate } from "node:crypto";
import type { Socket } from "node:net";
import type { DetailedPeerCertificate, TLSSocket } from "node:tls";
import type { HostPrincipal, PeerCertificate, RequestFacts } from "@parley/a2a/internal/protocol/index";
import type { HeaderOf, Client, Proxies } from "./proxies.ts";

/** Where facts come from beside the connection. */
export interface FactSources {
  /** Reads a header of the request. */
  header: HeaderOf;
  /** The proxies whose headers count. Absent: no headers do. */
  readonly proxies?: Proxies | undefined;
  /** What the framework knows of the caller. */
  readonly framework?: FrameworkFacts | undefined;
}

/** What a mount can find out about the caller of a request, when it is asked for. */
export interface FrameworkFacts {
  /** The user of the framework, in its own shape. */
  user?(): unknown;
  /** The caller, as the option `principal` returns it. */
  principal?(): HostPrincipal | Promise<HostPrincipal>;
}

/**
 * The facts that a connection of Node has about the client, or about the client of a proxy that is trusted. Each is looked up
 * when it is read.
 */
export class ConnectionFacts implements RequestFacts {
  readonly #socket: Socket | undefined;
  readonly #sources: FactSources;
  #found: { readonly principal: HostPrincipal | Promise<HostPrincipal> } | undefined;
  #behind: { readonly client: Client | undefined } | undefined;

  constructor(socket: Socket | undefined, sources: FactSources) {
    this.#socket = socket;
    this.#sources = sources;
  }

  /** IP address of the other side of the connection: the client, or the proxy. */
  get peer(): string | undefined {
    return this.#socket?.remoteAddress;
  }

  get remoteAddress(): string | undefined {
    return this.#client === undefined ? this.peer : this.#client.address;
  }

  get secure(): boolean {
    return this.#client?.secure ?? (this.#socket !== undefined && isTls(this.#socket));
  }

  get certificate(): PeerCertificate | undefined {
    // A proxy's own certificate is not that of its client.
    if (this.#client !== undefined) return this.#client.certificate();
    return this.#socket === undefined ? undefined : certificateOf(this.#socket);
  }

  get user(): unknown {
    return this.#sources.framework?.user?.();
  }

  get principal(): HostPrincipal | Promise<HostPrincipal> {
    this.#found ??= { principal: this.#sources.framework?.principal?.() };
    return this.#found.principal;
  }

  /** The client as the proxy describes it. `undefined`: the peer is not a trusted proxy. */
  get #client(): Client | undefined {
    const { proxies } = this.#sources;
    if (proxies === undefined) return undefined;
    this.#behind ??= { client: proxies.clientOf(this.peer, (name) => this.#sources.header(name)) };
    return this.#behind.client;
  }
}

/* Certificates of clients, as Node has them. */

/** Whether a connection is encrypted. */
function isTls(socket: Socket): socket is TLSSocket {
  // Not `in`: the socket of an HTTP/2 session is a proxy that does not support it.
  return (socket as Partial<TLSSocket>).encrypted === true;
}

/** The certificate that the other side of a connection has shown. `undefined`: none. */
export function certificateOf(socket: Socket): PeerCertificate | undefined {
  if (!isTls(socket)) return undefined;
  // After a renegotiation with another certificate Node reports its error, and leaves `authorized` as it was.
  const authorized = socket.authorized && !socket.authorizationError;
  // Node returns an empty object if there is no certificate, and null after the connection was closed.
  const shown = (authorized ? socket.getPeerCertificate(true) : socket.getPeerCertificate()) as Shown | null;
  const certificate = shown === null ? undefined : described(shown, authorized);
  return certificate && authorized ? { ...certificate, authorities: authoritiesOf(shown ?? {}) } : certificate;
}

/** The fingerprints of those who have signed a certificate. The last one has signed itself. */
function authoritiesOf({ issuerCertificate, fingerprint256 }: Shown): readonly string[] {
  if (!issuerCertificate || issuerCertificate.fingerprint256 === fingerprint256) return [];
  return [plain(issuerCertificate.fingerprint256), ...authoritiesOf(issuerCertificate)];
}

function plain(fingerprint: string): string {
  return fingerprint.replaceAll(":", "").toLowerCase();
}

/** A certificate in DER, which a proxy has checked. `undefined` for other bytes. */
export function certificateIn(der: Uint8Array): PeerCertificate | undefined {
  try {
    return described(new X509Certificate(der).toLegacyObject(), true);
  } catch {
    return undefined;
  }
}

type Shown = Partial<DetailedPeerCertificate>;

function described(shown: Shown, authorized: boolean): PeerCertificate | undefined {
  if (!shown.raw || !shown.fingerprint256) return undefined;
  return {
    authorized,
    der: new Uint8Array(shown.raw),
    fingerprint: plain(shown.fingerprint256),
    subject: { ...(shown.subject as PeerCertificate["subject"]) },
    names: namesIn(shown.subjectaltname),
    ...(shown.valid_to !== undefined && { expires: Date.parse(shown.valid_to) }),
  };
}

/** Splits a list such as `DNS:a, URI:"b, c"`. Node writes a name that contains a comma or a quote as JSON text. */
function namesIn(list = ""): readonly string[] {
  return [...list.matchAll(/(?:, )?([^:,]+:)("(?:[^"\\]|\\.)*"|[^,]*)/gy)].map(([, kind = "", name = ""]) =>
    name.startsWith('"') ? kind + (JSON.parse(name) as string) : kind + name,
  );
}
