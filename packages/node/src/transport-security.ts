import type { ServerOptions as TlsOptions } from "node:https";
import { isLoopback, type Logger } from "@parley/a2a/internal/base/index";
import type { Authenticator } from "@parley/a2a/auth";
import type { UniversalHandler, UniversalRequest, UniversalResponse } from "@parley/a2a/internal/protocol/index";
import type { ConnectionFacts } from "./facts.ts";
import { asksForCertificates } from "./listen.ts";
import type { Port } from "./port.ts";
import { Proxies, type TrustProxy } from "./proxies.ts";
import type { TlsFiles } from "./tls.ts";

/* What a server does so that nobody on the way can read along. */

/** The options that this file is about. */
export interface SecurityOptions {
  readonly tls?: TlsOptions | TlsFiles;
  readonly trustProxy?: TrustProxy;
  readonly hsts?: string | false;
  readonly insecure?: boolean;
  readonly publicUrl?: string;
  readonly authenticator?: Pick<Authenticator, "securitySchemes" | "resource">;
}

/** How a server speaks TLS, and what it does without. */
export interface TransportSecurity {
  /** TLS of the ports. Absent: they speak plain HTTP. */
  readonly tls: TlsOptions | undefined;
  readonly proxies: Proxies | undefined;
  /** The rule for requests over plain HTTP. Absent: all are answered. */
  readonly plain: PlainRule | undefined;
  /** The same handler under the rule for plain HTTP, except for probes, with the header for browsers. */
  around(handle: UniversalHandler, isProbe: (url: string) => boolean): UniversalHandler;
  /** Gives ports the certificate again when its files change. Returns the function that ends it. */
  watch(ports: readonly Pick<Port, "renew">[]): () => void;
}

/**
 * The transport security of a server that listens on `address`. Rejects where an option is not valid, or a certificate cannot be
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

/** Browsers would use HTTPS for everything else on this machine, too. */
function hstsOf({ hsts, publicUrl }: SecurityOptions): string | undefined {
  if (hsts !== undefined) return hsts === false ? undefined : hsts;
  const isLocal = publicUrl === undefined || !URL.canParse(publicUrl) || isLoopback(new URL(publicUrl).hostname);
  return isLocal ? undefined : "max-age=31536000";
}

/** The answer over plain HTTP to others than the proxies. */
const refused: UniversalResponse = {
  status: 403,
  headers: { "content-type": "application/json" },
  body: '{"error":{"code":403,"status":"PERMISSION_DENIED","message":"Plain HTTP is answered to this machine and its proxies alone"}}',
};

/** How often a refusal is logged, in milliseconds. */
const logInterval = 60_000;

/** Whether a request without TLS may be answered. */
export type PlainRule = (request: Pick<UniversalRequest, "facts">) => boolean;

/** The rule for a server without TLS that other machines reach: only this machine and the proxies may send requests. */
export function plainRule(proxies: Proxies, logger: Logger): PlainRule {
  let quietUntil = -Infinity;
  return ({ facts }) => {
    // The exchanges of this package have these facts.
    const { peer } = facts as ConnectionFacts;
    if (peer !== undefined && (isLoopback(peer) || proxies.trusts(peer))) return true;
    const now = performance.now();
    if (peer !== undefined && now >= quietUntil) {
      quietUntil = now + logInterval;
      logger.warn("A request over plain HTTP was refused: its sender is none of the proxies in `trustProxy`", {
        address: peer,
      });
    }
    return false;
  };
}

/**
 * Answers through `handle` what the rule allows, and probes: an orchestrator sends them past the proxies, and they tell nothing that
 * somebody on the way could use. `undefined`: everything.
 */
export function underRule(
  handle: UniversalHandler,
  rule: PlainRule | undefined,
  isProbe: (url: string) => boolean = () => false,
): UniversalHandler {
  return rule === undefined ? handle : (request) => (isProbe(request.url) || rule(request) ? handle(request) : refused);
}

/**
 * Adds `Strict-Transport-Security` to the answers to clients whose connection is encrypted (RFC 6797 §7.1), and to no others
 * (§7.2).
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
