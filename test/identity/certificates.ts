import { X509Certificate } from "node:crypto";
import { generate } from "selfsigned";

/** Real certificates for tests: authorities, and certificates that they sign. */

/** A certificate with its key, in PEM. */
export interface TestCertificate {
  readonly cert: string;
  readonly key: string;
  /** SHA-256 in hexadecimal with colons, as tools print it. */
  readonly fingerprint: string;
}

/** The content of a certificate. */
export interface CertificateInit {
  readonly commonName: string;
  /** `URI:…`, `DNS:…`, `IP:…` or `email:…`. */
  readonly names?: readonly string[];
  /** The authority that signs it. Default: self-signed. */
  readonly by?: TestCertificate;
  /** Whether it may sign others. Default false. */
  readonly isAuthority?: boolean;
  /** Expiry. Default: in one day. */
  readonly expires?: Date;
}

const kinds: Readonly<Record<string, 1 | 2 | 6>> = { email: 1, DNS: 2, URI: 6 };

/** Makes a certificate. */
export async function certificate(init: CertificateInit): Promise<TestCertificate> {
  const { commonName, names = [], by, isAuthority = false, expires = new Date(Date.now() + 86_400_000) } = init;
  const altNames = names.map((name) => {
    const [kind = "", ...rest] = name.split(":");
    const value = rest.join(":");
    const type = kinds[kind];
    return type === undefined ? { type: 7 as const, ip: value } : { type, value };
  });
  const { cert, private: key } = await generate([{ name: "commonName", value: commonName }], {
    keyType: "ec",
    algorithm: "sha256",
    notBeforeDate: new Date(expires.getTime() - 7 * 86_400_000),
    notAfterDate: expires,
    ...(by !== undefined && { ca: { cert: by.cert, key: by.key } }),
    extensions: [
      { name: "basicConstraints", cA: isAuthority, critical: true },
      { name: "keyUsage", digitalSignature: true, keyCertSign: isAuthority, critical: true },
      ...(altNames.length > 0 ? [{ name: "subjectAltName" as const, altNames }] : []),
    ],
  });
  return { cert, key, fingerprint: new X509Certificate(cert).fingerprint256 };
}
