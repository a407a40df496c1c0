import { constants, X509Certificate } from "node:crypto";
import { readFile, stat } from "node:fs/promises";
import type { ServerOptions as TlsOptions } from "node:https";
import { createSecureContext } from "node:tls";
import type { Authenticator } from "@parley/a2a/auth";
import { isLoopback, type Logger } from "@parley/a2a/internal/base/index";
import type { UniversalHandler, UniversalRequest, UniversalResponse } from "@parley/a2a/internal/protocol/index";
import { asksForCertificates } from "../listen.ts";
import { ConnectionFacts } from "./facts.ts";
import { Proxies, type TrustProxy } from "./proxies.ts";

/* Transport security: TLS, and which plain connections are accepted. */

/** The options for transport security. */
export interface SecurityOptions {
  readonly tls?: TlsOptions | TlsFiles;
  readonly trustProxy?: TrustProxy;
  readonly hsts?: string | false;
  readonly insecure?: boolean;
  readonly publicUrl?: string;
  readonly authenticator?: Pick<Authenticator, "securitySchemes" | "resource">;
}

/** The transport security of a server. */
export interface TransportSecurity {
  /** TLS of the ports. Absent: they speak plain HTTP. */
  readonly tls: TlsOptions | undefined;
  readonly proxies: Proxies | undefined;
  /** The rule for requests over plain HTTP. Absent: all are answered. */
  readonly plain: PlainRule | undefined;
  /** Wraps a handler: applies the rule for plain HTTP, except to probes, and adds the header for browsers. */
  around(handle: UniversalHandler, isProbe: (url: string) => boolean): UniversalHandler;
  /** Reloads the certificate of ports when its files change. Returns a function that stops this. */
  watch(ports: readonly { renew(tls: TlsOptions): void }[]): () => void;
}

/**
 * The transport security of a server that listens on `address`. Rejects if an option is not valid, or a certificate cannot be
 * read.
 */
export async function transportSecurity(
  options: SecurityOptions,
  address: string,
  logger: Logger,
): Promise<TransportSecurity> {
  const { trustProxy, insecure = false } = options;
  const proxies = trustProxy === undefined ? undefined : new Proxies(trustProxy);
  const { loadTls } = options.tls === undefined ? {} : await import("./tls.ts");
  const loaded = options.tls && (await loadTls?.(options.tls, asksForCertificates(options.authenticator)));
  const isOpen = loaded === undefined && !isLoopback(address) && !insecure;
  const plain = isOpen && proxies !== undefined ? plainRule(proxies, logger) : undefined;
  const hsts = hstsOf(options);
  return {
    tls: loaded?.options,
    proxies,
    plain,
    around: (handle, isProbe) =>
      underRule(loaded === undefined && proxies === undefined ? handle : withHsts(handle, hsts), plain, isProbe),
    watch: (ports) => loaded?.watch((renewed) => ports.forEach((port) => port.renew(renewed)), logger) ?? (() => {}),
  };
}

/** No HSTS for loopback: browsers would then require HTTPS for everything on this machine. */
function hstsOf({ hsts, publicUrl }: SecurityOptions): string | undefined {
  if (hsts !== undefined) return hsts === false ? undefined : hsts;
  const isLocal = publicUrl === undefined || !URL.canParse(publicUrl) || isLoopback(new URL(publicUrl).hostname);
  return isLocal ? undefined : "max-age=31536000";
}

/** The answer over plain HTTP to anyone but this machine and the proxies. */
const refused: UniversalResponse = {
  status: 403,
  headers: { "content-type": "application/json" },
  body: '{"error":{"code":403,"status":"PERMISSION_DENIED","message":"This server accepts plain HTTP only from its own machine and its proxies"}}',
};

/** Minimum time between two log records of rejected requests, in milliseconds. */
const logInterval = 60_000;

/** Whether a request without TLS may be answered. */
export type PlainRule = (request: Pick<UniversalRequest, "facts">) => boolean;

/** The rule for a server without TLS that other machines can reach: only this machine and the proxies may send requests. */
export function plainRule(proxies: Proxies, logger: Logger): PlainRule {
  let quietUntil = -Infinity;
  return ({ facts }) => {
    const peer = facts instanceof ConnectionFacts ? facts.peer : undefined;
    if (peer !== undefined && (isLoopback(peer) || proxies.trusts(peer))) return true;
    const now = performance.now();
    if (peer !== undefined && now >= quietUntil) {
      quietUntil = now + logInterval;
      logger.warn("Rejected a request over plain HTTP: its sender is not in `trustProxy`", {
        address: peer,
      });
    }
    return false;
  };
}

/**
 * Passes requests on to `handle` if the rule allows them. Probes always pass, because an orchestrator does not send them through the proxies,
 * and their answers contain nothing secret. Without a rule, everything passes.
 */
export function underRule(
  handle: UniversalHandler,
  rule: PlainRule | undefined,
  isProbe: (url: string) => boolean = () => false,
): UniversalHandler {
  return rule === undefined ? handle : (request) => (isProbe(request.url) || rule(request) ? handle(request) : refused);
}

/**
 * Adds `Strict-Transport-Security` only to answers to clients whose connection is encrypted (RFC 6797 §7.1, §7.2).
 */
function withHsts(handle: UniversalHandler, value: string | undefined): UniversalHandler {
  if (value === undefined) return handle;
  const add = (response: UniversalResponse): UniversalResponse => ({
    ...response,
    headers: { ...response.headers, "strict-transport-security": value },
  });
  return (request) => {
    if (request.facts?.secure !== true) return handle(request);
    const response = handle(request);
    return response instanceof Promise ? response.then(add) : add(response);
  };
}

/**
 * Certificate and key in files. The server reloads them when they change, without a restart. Open connections keep the old
 * certificate.
 */
export interface TlsFiles extends Omit<TlsOptions, "cert" | "key" | "ca" | "pfx"> {
  /** The certificate, followed by its intermediate certificates, in PEM. */
  readonly certFile: string;
  /** Its private key in PEM. */
  readonly keyFile: string;
  /** The authorities that sign client certificates, in PEM. Default: Node's. */
  readonly caFile?: string;
  /** How often the files are checked, in milliseconds. Default 10 s. */
  readonly reloadInterval?: number;
}

/** The loaded TLS options of a server. */
export interface LoadedTls {
  readonly options: TlsOptions;
  /** Calls `use` when the files have changed. Returns the function that ends it. */
  watch(use: (options: TlsOptions) => void, logger: Logger): () => void;
}

const old: ReadonlySet<unknown> = new Set(["TLSv1", "TLSv1.1"]);

/**
 * Reads the certificates of a server. Rejects if a file cannot be read or used, or a version before TLS 1.2 is allowed.
 *
 * @param asksClients - Whether to request client certificates. They are optional: authenticators decide.
 */
export async function loadTls(tls: TlsOptions | TlsFiles, asksClients: boolean): Promise<LoadedTls> {
  if (old.has(tls.minVersion) || old.has(tls.maxVersion) || tls.secureProtocol !== undefined) {
    throw new Error(
      "`tls` must not allow versions before TLS 1.2, which are not safe. Remove minVersion, maxVersion and secureProtocol",
    );
  }
  checkHasCertificate(tls);
  const usual: TlsOptions = {
    minVersion: "TLSv1.2",
    ...(asksClients && { requestCert: true, rejectUnauthorized: false }),
  };
  // A client could present another certificate in a renegotiation (TLS 1.2), and Node would still call its connection authorized.
  // A resumed session has the first certificate without its chain, so its authorities would be unknown.
  const secureOptions =
    (tls.secureOptions ?? 0) | constants.SSL_OP_NO_RENEGOTIATION | (asksClients ? constants.SSL_OP_NO_TICKET : 0);
  if (!isFiles(tls)) return { options: { ...usual, ...tls, secureOptions }, watch: () => () => {} };
  const { certFile, keyFile, caFile, reloadInterval = 10_000, ...others } = tls;
  const files = { cert: certFile, key: keyFile, ...(caFile !== undefined && { ca: caFile }) };
  const read = async (): Promise<TlsOptions> => ({ ...usual, ...others, secureOptions, ...(await contents(files)) });
  let seen = await stateOf(files);
  const options = await read();
  check(options, caFile);
  return {
    options,
    watch(use, logger) {
      const look = async (): Promise<void> => {
        const now = await stateOf(files);
        if (now === seen) return;
        seen = now;
        try {
          const renewed = await read();
          check(renewed, caFile);
          use(renewed);
          logger.info("Reloaded TLS certificate", files);
        } catch (cause) {
          logger.error("Failed to load TLS certificate; keeping the current one", { ...files, cause });
        }
      };
      let ended = false;
      let timer: NodeJS.Timeout;
      const next = (): void => {
        if (!ended) timer = setTimeout(() => void look().finally(next), reloadInterval).unref();
      };
      next();
      return () => {
        ended = true;
        clearTimeout(timer);
      };
    },
  };
}

/** Rejects options without a certificate, because every handshake would fail. */
function checkHasCertificate(tls: TlsOptions & Partial<TlsFiles>): void {
  const { certFile, keyFile, cert, key, pfx, SNICallback } = tls;
  const inFiles = certFile !== undefined || keyFile !== undefined;
  if (inFiles ? certFile && keyFile : (cert && key) || pfx || SNICallback) return;
  throw new Error("`tls` needs a certificate and its key: the files certFile and keyFile, or cert and key in PEM");
}

function isFiles(tls: TlsOptions | TlsFiles): tls is TlsFiles {
  return "certFile" in tls || "keyFile" in tls;
}

const isCertificate = /^-----BEGIN (?:X509 |TRUSTED )?CERTIFICATE-----/;

/** Throws if the files do not belong together, for example while they are being replaced. */
function check(options: TlsOptions, caFile: string | undefined): void {
  createSecureContext(options);
  if (caFile === undefined) return;
  // OpenSSL accepts an empty or truncated file. The server would then reject clients of the missing authorities.
  const authorities = String(options.ca)
    .split(/^(?=-----BEGIN )/m)
    .filter((block) => isCertificate.test(block));
  if (authorities.length === 0) throw new Error(`${caFile} has no certificate`);
  for (const authority of authorities) new X509Certificate(authority);
}

type Files = Readonly<Record<string, string>>;

async function contents(files: Files): Promise<Record<string, Buffer>> {
  const read = Object.entries(files).map(async ([name, path]) => [name, await readFile(path)] as const);
  return Object.fromEntries(await Promise.all(read));
}

/** A text that changes when one of the files changes, even if a link then points to another file. */
async function stateOf(files: Files): Promise<string> {
  const states = Object.values(files).map(async (path) => {
    try {
      const { ino, mtimeNs, size } = await stat(path, { bigint: true });
      return `${ino} ${mtimeNs} ${size}`;
    } catch {
      return "missing";
    }
  });
  return (await Promise.all(states)).join(", ");
}
