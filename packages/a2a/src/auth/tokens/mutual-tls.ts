import { systemClock, type Clock } from "../../base/index.ts";
import type { PeerCertificate, Principal } from "../../protocol/index.ts";
import { challenge, problemParams } from "../challenge.ts";
import { defineScheme } from "../scheme.ts";
import type { Authenticator } from "../port.ts";
import { wrongOption } from "./options.ts";

/** Options of `mutualTls()`. */
export interface MutualTlsOptions {
  /** Name of the scheme on the card. Default `mutualTls`. */
  readonly name?: string;
  /** Description of the scheme on the card. Default: none. */
  readonly description?: string;
  /** The scopes that every caller needs. They are in the requirement on the card. Default: none. */
  readonly scopes?: readonly string[];
  /**
   * Callers by the fingerprint of their certificates: SHA-256 in hexadecimal, with or without colons. These certificates need no authority
   * and may be self-signed: the handshake proves the key.
   */
  readonly certificates?: Readonly<Record<string, Principal>>;
  /** Callers by an alternative name of their certificates: `URI:spiffe://example.com/agent`, `DNS:agent.example.com`. */
  readonly names?: Readonly<Record<string, Principal>>;
  /**
   * Fingerprints of the authorities that may sign a certificate, directly or indirectly. Default: all that the server trusts. Needs a host
   * that reports the authorities of a certificate, such as `serve()`.
   */
  readonly authorities?: readonly string[];
  /**
   * Finds the caller by a certificate that an authority of the server has signed; `undefined` rejects it. Default: with neither
   * `certificates` nor `names`, the subject is the first `URI`, `DNS` or `email` name of the certificate.
   */
  readonly principal?: (certificate: PeerCertificate) => Principal | undefined | Promise<Principal | undefined>;
  /** Clock, for certificates that expire while a connection is open. Default: the runtime's. */
  readonly clock?: Clock;
}

/**
 * Authenticates callers by certificates: mutual TLS. The host, or a trusted proxy (`trustProxy`), requests a certificate and reports
 * whether one of its authorities (`tls.ca`) has signed it.
 *
 * @throws A2AError `InvalidParams` for an invalid fingerprint, or a name without its kind.
 *
 * @example
 * ```ts
 * const authenticator = mutualTls({ names: { "URI:spiffe://example.com/planner": { subject: "planner" } } });
 * ```
 */
export function mutualTls(options: MutualTlsOptions = {}): Authenticator {
  const { name = "mutualTls", description, scopes, clock = systemClock } = options;
  const findHolder = holders(options);
  return defineScheme({
    name,
    scheme: { mtlsSecurityScheme: { ...(description !== undefined && { description }) } },
    scopes,
    isAmbient: true,
    credentials: ({ facts }) => facts?.certificate,
    verify(certificate) {
      // The handshake has checked the time once. A connection may be open for weeks.
      if (certificate.expires !== undefined && certificate.expires <= clock.now()) return undefined;
      return findHolder(certificate);
    },
    // HTTP has no scheme for certificates, and a 401 must have a challenge (RFC 9110 §15.5.2).
    challenge: (_place, problem) => challenge("MutualTLS", problemParams(problem)),
  });
}

function holders(
  options: MutualTlsOptions,
): (certificate: PeerCertificate) => ReturnType<Required<MutualTlsOptions>["principal"]> {
  const certificates = new Map(
    Object.entries(options.certificates ?? {}).map(([text, principal]) => [
      fingerprint("certificates", text),
      principal,
    ]),
  );
  const names = new Map(Object.entries(options.names ?? {}));
  for (const name of names.keys()) checkName(name);
  const authorities = options.authorities?.map((text) => fingerprint("authorities", text));
  const isOpen = options.certificates === undefined && options.names === undefined;
  const principal = options.principal ?? (isOpen ? byName : () => undefined);
  return (certificate) => {
    const pinned = certificates.get(certificate.fingerprint);
    if (pinned !== undefined) return pinned;
    if (!certificate.authorized) return undefined;
    if (authorities?.some((one) => certificate.authorities?.includes(one)) === false) return undefined;
    const named = certificate.names.find((one) => names.has(one));
    return named === undefined ? principal(certificate) : names.get(named);
  };
}

/** Rejects a name without its kind, which no certificate has. */
function checkName(name: string): void {
  if (/^[A-Za-z][\w ]*:./.test(name) && !/^(?:https?|spiffe|urn):/i.test(name)) return;
  const description = `must begin with their kind, as in "URI:spiffe://example.com/agent", "DNS:agent.example.com" or "email:ada@example.com", and not ${JSON.stringify(name.slice(0, 80))}`;
  throw wrongOption("names", description);
}

function fingerprint(field: string, text: string): string {
  const plain = text.replaceAll(":", "").toLowerCase();
  if (/^[\da-f]{64}$/.test(plain)) return plain;
  throw wrongOption(
    field,
    `must have fingerprints: SHA-256 in hexadecimal, and not ${JSON.stringify(text.slice(0, 80))}`,
  );
}

/** The name of an agent, without its kind. The common name does not count, because authorities do not check it (RFC 9525 §6.3). */
function byName({ names }: PeerCertificate): Principal | undefined {
  for (const kind of ["URI:", "DNS:", "email:"]) {
    const name = names.find((one) => one.startsWith(kind));
    if (name !== undefined && name.length <= 1024) return { subject: name.slice(kind.length) };
  }
  return undefined;
}
