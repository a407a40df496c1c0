/* Client certificates of Node's connections. */

import { X509Certificate } from "node:crypto";
import type { Socket } from "node:net";
import type { DetailedPeerCertificate, TLSSocket } from "node:tls";
import type { PeerCertificate } from "@parley/a2a/internal/protocol/index";

/** Whether a connection is encrypted. */
export function isTls(socket: Socket): socket is TLSSocket {
  // Not `in`: the socket of an HTTP/2 session is a proxy that does not support it.
  return (socket as Partial<TLSSocket>).encrypted === true;
}

/** The certificate that the other side of a connection has presented. `undefined`: none. */
export function certificateOf(socket: Socket): PeerCertificate | undefined {
  if (!isTls(socket)) return undefined;
  // After a renegotiation with another certificate Node reports its error, and leaves `authorized` as it was.
  const authorized = socket.authorized && !socket.authorizationError;
  // Node returns an empty object if there is no certificate, and null after the connection was closed.
  const shown: Shown | null = authorized ? socket.getPeerCertificate(true) : socket.getPeerCertificate();
  if (shown === null) return undefined;
  const certificate = described(shown, authorized);
  return certificate && authorized ? { ...certificate, authorities: authoritiesOf(shown) } : certificate;
}

/** The fingerprints of the authorities in a certificate's chain. The last one is self-signed. */
function authoritiesOf({ issuerCertificate, fingerprint256 }: Shown): readonly string[] {
  if (!issuerCertificate || issuerCertificate.fingerprint256 === fingerprint256) return [];
  return [plain(issuerCertificate.fingerprint256), ...authoritiesOf(issuerCertificate)];
}

function plain(fingerprint: string): string {
  return fingerprint.replaceAll(":", "").toLowerCase();
}

/** Reads a certificate in DER that a proxy has checked. `undefined` for other bytes. */
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
    name.startsWith('"') ? kind + String(JSON.parse(name)) : kind + name,
  );
}
