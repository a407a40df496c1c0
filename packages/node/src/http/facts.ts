import type { Socket } from "node:net";
import type { HostPrincipal, PeerCertificate, RequestFacts } from "@parley/a2a/internal/protocol/index";
import { certificateOf, isTls } from "./certificates.ts";
import type { HeaderOf, Client, Proxies } from "./proxies.ts";

/** Sources of facts other than the connection. */
export interface FactSources {
  /** Reads a header of the request. */
  header: HeaderOf;
  /** The proxies whose headers are trusted. Absent: no headers are. */
  readonly proxies?: Proxies | undefined;
  /** The framework's facts about the caller. */
  readonly framework?: FrameworkFacts | undefined;
}

/** Facts about the caller of a request that a mount looks up on demand. */
export interface FrameworkFacts {
  /** The user of the framework, in its own shape. */
  user?(): unknown;
  /** The caller, as the option `principal` returns it. */
  principal?(): HostPrincipal | Promise<HostPrincipal>;
}

/**
 * Facts about the client of a Node connection, or, if the connection comes from a trusted proxy, about the proxy's client. Each is looked up
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
    // The certificate of the connection is the proxy's, not the client's.
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
