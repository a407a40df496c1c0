/**
 * What a host knows of the sender of a request beside what the request itself says. Authenticators read it. A host looks each
 * fact up when it is asked for, so the facts that nobody reads cost nothing.
 */
export interface RequestFacts {
  /** IP address of the client. Behind a proxy it is that of the proxy. */
  readonly remoteAddress?: string | undefined;
  /** The certificate that the client has shown, where the server asked for one (mutual TLS). */
  readonly certificate?: PeerCertificate | undefined;
  /** The user that the host's framework has found, such as `request.user` of Express and Fastify. Its shape is the framework's. */
  readonly user?: unknown;
}

/** A client's certificate of TLS (RFC 5280). */
export interface PeerCertificate {
  /** Whether the host has checked it against its authorities. Where this is false the certificate proves nothing. */
  readonly authorized: boolean;
  /** The certificate itself, in DER. */
  readonly der: Uint8Array;
  /** SHA-256 of the DER, as lower-case hexadecimal digits. */
  readonly fingerprint: string;
  /** Its subject, by the short names of attributes: `{ CN: "agent-7", O: "Example" }`. */
  readonly subject: Readonly<Record<string, string | readonly string[]>>;
  /** Its alternative names, with their kinds: `DNS:agent.example.com`, `URI:spiffe://example.com/agent`. */
  readonly names: readonly string[];
}
