import { once } from "node:events";
import { connect } from "node:tls";
import { isLoopback } from "@parley/a2a/internal/base/index";
import { systemReason } from "../errors.ts";
import type { Finding } from "./finding.ts";

const day = 86_400_000;
const timeout = 10_000;

/** Whether the connection is encrypted, by a certificate that clients accept. */
export async function* checkTls(url: URL): AsyncGenerator<Finding> {
  const host = url.hostname.replace(/^\[|\]$/g, "");
  if (url.protocol === "http:") {
    if (isLoopback(host)) return;
    const seen = `${url.origin} is not encrypted: everyone on the way can read and change what is said`;
    const cure =
      "Serve it by TLS: tls of serve() or --tls-cert, or a proxy that ends TLS (trustProxy), and an https address in publicUrl";
    yield { subject: "tls", verdict: "broken", seen, cure };
    return;
  }
  const socket = connect({
    host,
    port: Number(url.port || 443),
    ALPNProtocols: ["h2", "http/1.1"],
    ...(/^[\d.]+$|:/.test(host) ? {} : { servername: host }),
  });
  try {
    await once(socket, "secureConnect", { signal: AbortSignal.timeout(timeout) });
    yield accepted(socket.getProtocol() ?? "TLS", Date.parse(socket.getPeerCertificate().valid_to), Date.now());
  } catch (error) {
    const reason = systemReason(error) ?? (error instanceof Error ? error.message : String(error));
    yield { subject: "tls", verdict: "broken", seen: `no encrypted connection: ${reason}`, cure: cureOf(reason) };
  } finally {
    socket.destroy();
  }
}

function accepted(protocol: string, expires: number, now: number): Finding {
  const days = Math.floor((expires - now) / day);
  const seen = `${protocol}, the certificate is good for ${days} days`;
  if (days >= 14) return { subject: "tls", verdict: "ok", seen };
  return {
    subject: "tls",
    verdict: "warning",
    seen,
    cure: "Renew it, and see that it renews itself: clients will refuse it",
  };
}

function cureOf(reason: string): string {
  if (/self-signed|cannot be verified/.test(reason)) {
    return "Serve a certificate of a public authority with its intermediates, or give the authority to clients: NODE_EXTRA_CA_CERTS=ca.pem";
  }
  if (/expired/.test(reason)) return "Renew the certificate, and load it: files of tls are read again when they change";
  if (/another host/.test(reason)) return "Get a certificate for this host name, or correct the name";
  if (/does not speak TLS/.test(reason)) return "Call http:// there, or end TLS at the server or at a proxy";
  return "See that the server, or the proxy in front of it, listens there with TLS";
}
