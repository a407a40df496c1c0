import type { PeerCertificate } from "@parley/a2a/internal/protocol/index";
import { certificateIn } from "./certificate.ts";
import { lastElement } from "./forwarded.ts";

/** The header of Envoy. Any other header has the certificate itself. */
const envoyHeader = "x-forwarded-client-cert";

/**
 * The certificate of a client as a proxy passes it on, in the header `name`. The proxy has checked it, or does not pass it on
 * (RFC 9440 §2.2). `undefined`: there is none, or it cannot be read.
 *
 * - `x-forwarded-client-cert`: the last element counts, which the nearest proxy wrote.
 * - Any other header: the certificate, as `:base64:` (RFC 9440), as a PEM in percent-encoding (nginx, AWS), or in base64 (Traefik).
 */
export function forwardedCertificate(name: string, value: string | undefined): PeerCertificate | undefined {
  if (value === undefined || value === "") return undefined;
  return name === envoyHeader ? fromEnvoy(value) : inText(value);
}

function fromEnvoy(value: string): PeerCertificate | undefined {
  const pairs = lastElement(value)?.pairs ?? [];
  const all = (wanted: string): readonly string[] =>
    pairs.filter(([name, text]) => name.toLowerCase() === wanted && text !== "").map(([, text]) => text);
  const [certificate] = all("cert");
  if (certificate !== undefined) return inText(certificate);
  const [hash] = all("hash");
  if (hash === undefined || !/^[\da-f]{64}$/i.test(hash)) return undefined;
  return {
    authorized: true,
    fingerprint: hash.toLowerCase(),
    // As one text, in an order that depends on the proxy. So it is left out.
    subject: {},
    names: [...all("uri").map((uri) => `URI:${uri}`), ...all("dns").map((dns) => `DNS:${dns}`)],
  };
}

/** A certificate, from the forms in which proxies write it. `undefined` for other text. */
function inText(value: string): PeerCertificate | undefined {
  let text = value.trim();
  if (/^:[^:]*:$/.test(text)) text = text.slice(1, -1);
  else if (text.includes("%")) {
    try {
      text = decodeURIComponent(text);
    } catch {
      return undefined;
    }
  }
  const base64 = text.replaceAll(/-----(?:BEGIN|END) CERTIFICATE-----|\s/g, "");
  return /^[A-Za-z\d+/]+={0,2}$/.test(base64) ? certificateIn(Buffer.from(base64, "base64")) : undefined;
}
