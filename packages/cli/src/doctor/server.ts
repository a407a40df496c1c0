import { once } from "node:events";
import { connect } from "node:tls";
import { lintCard } from "@parley/a2a/cards";
import { isLoopback } from "@parley/a2a/internal/base/index";
import type { AgentCard } from "@parley/a2a/internal/model/index";
import { limited, readCard } from "../card.ts";
import { callHeaders, open, type CallOptions } from "../connection.ts";
import { explain, systemReason } from "../errors.ts";
import type { Io } from "../io.ts";
import type { Finding } from "../output/show.ts";
import { quote } from "../invocation.ts";
import { byteSize, listed } from "../output/text.ts";

/* Checks of the server itself: its TLS, its card, its clock. */

const day = 86_400_000;
const timeout = 10_000;

/** Checks that the connection is encrypted, with a certificate that clients accept. */
export async function* checkTls(url: URL): AsyncGenerator<Finding> {
  const host = url.hostname.replace(/^\[|\]$/g, "");
  if (url.protocol === "http:") {
    if (isLoopback(host)) return;
    const seen = `${url.origin} is not encrypted: anyone on the network can read and change the messages`;
    const cure =
      "Serve it over TLS: tls of serve() or --tls-cert, or a proxy that terminates TLS (trustProxy), and an https URL in publicUrl";
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
    yield { subject: "tls", verdict: "broken", seen: `no encrypted connection: ${reason}`, cure: tlsCureOf(reason) };
  } finally {
    socket.destroy();
  }
}

function accepted(protocol: string, expires: number, now: number): Finding {
  const days = Math.floor((expires - now) / day);
  const seen = `${protocol}, the certificate expires in ${days} days`;
  if (days >= 14) return { subject: "tls", verdict: "ok", seen };
  return {
    subject: "tls",
    verdict: "warning",
    seen,
    cure: "Renew it, preferably automatically: clients reject expired certificates",
  };
}

function tlsCureOf(reason: string): string {
  if (/self-signed|cannot be verified/.test(reason)) {
    return "Serve a certificate of a public authority with its intermediates, or pass the authority to clients: NODE_EXTRA_CA_CERTS=ca.pem";
  }
  if (/expired/.test(reason)) return "Renew the certificate; the server reloads its files when they change";
  if (/another host/.test(reason)) return "Use a certificate for this host name, or correct the name";
  if (/does not use TLS/.test(reason)) return "Use http://, or terminate TLS at the server or at a proxy";
  return "Check that the server, or the proxy in front of it, listens there with TLS";
}

/** The time of the server, and the local times of the request and the answer. In milliseconds since the Unix epoch. */
export interface ServerDate {
  readonly said: number;
  readonly asked: number;
  readonly answered: number;
}

/** The result of checking the card. */
export interface FoundCard {
  readonly findings: readonly Finding[];
  /** In the form of 1.0. Absent if a client cannot use it. */
  readonly card?: AgentCard;
  readonly date?: ServerDate;
}

/** Checks that clients find the card and can use it (A2A 1.0 §8.2). */
export async function checkCard(io: Io, at: string, options: CallOptions): Promise<FoundCard> {
  // All bindings, because each address is checked.
  const { binding: _, ...anyBinding } = options;
  let document: Awaited<ReturnType<typeof readCard>>;
  try {
    document = await readCard(io, at, anyBinding);
  } catch (error) {
    const seen = explain(error, { url: at });
    const [agent, ...others] = /\b404\b/.test(seen) ? await agentsNear(at, callHeaders(options, io.env)) : [];
    const cure =
      agent === undefined
        ? cardCureOf(seen, at)
        : `Pass the URL of an agent: ${listed([agent, ...others], quote).join(" or ")}`;
    return { findings: [{ subject: "card", verdict: "broken", seen, cure }] };
  }
  const address = document.address ?? at;
  const { finding, date } = await probe(address, callHeaders(options, io.env));
  const findings = [finding, ...lint(document.card, at)];
  try {
    const { card } = await open(io, at, anyBinding, { retry: false });
    return { findings, card, ...(date && { date }) };
  } catch (error) {
    const cure = "Correct supportedInterfaces of the card: url, protocolBinding and protocolVersion (A2A 1.0 §4.4.6)";
    findings.push({ subject: "card", verdict: "broken", seen: explain(error, { url: at }), cure });
    return { findings, ...(date && { date }) };
  }
}

function cardCureOf(seen: string, at: string): string {
  if (/refused/.test(seen)) return "Start the server, or correct the port. A firewall may also refuse connections";
  if (/unknown host|lookup failed/.test(seen)) return "Correct the host name, or its DNS record";
  if (/certificate|TLS/.test(seen)) return "See tls above: clients cannot connect";
  if (/in time|timed out|no route|network unreachable/.test(seen))
    return "Check that the firewall and the proxy forward requests to this address";
  if (/\b40[13]\b/.test(seen)) return "Serve the card without authentication: it tells clients how to authenticate";
  const { origin } = new URL(at);
  return `Add the path of the agent to the URL, such as ${origin}/agent. If it has none, serve its card as JSON at ${origin}${cardPath}, and forward that path in the proxy`;
}

const cardPath = "/.well-known/agent-card.json";

/**
 * URLs of the agents that the HTML page at this URL, or at the root, links to. Servers of several agents have such a page at
 * their root.
 */
async function agentsNear(at: string, headers: Readonly<Record<string, string>>): Promise<readonly string[]> {
  const { origin, href } = new URL(at);
  for (const place of new Set([href, `${origin}/`])) {
    try {
      const signal = AbortSignal.timeout(timeout);
      const response = await fetch(place, { headers: { ...headers, accept: "text/html" }, redirect: "error", signal });
      const page = Buffer.from((await limited(response)) ?? []).toString("utf8");
      const links = [...page.matchAll(/ href="([^"&]+)"/g)].map(([, link = ""]) => new URL(link, place));
      const cards = links.filter((link) => link.origin === origin && link.pathname.endsWith(cardPath));
      const agents = new Set(cards.map(({ pathname }) => origin + pathname.slice(0, -cardPath.length)));
      if (agents.size > 0) return [...agents];
    } catch {
      // The page is only a hint.
    }
  }
  return [];
}

/** Requests the card again, for its headers. */
async function probe(
  address: string,
  headers: Readonly<Record<string, string>>,
): Promise<{ readonly finding: Finding; readonly date?: ServerDate }> {
  const asked = Date.now();
  try {
    // Follows no redirects, like clients, because the headers may contain credentials for this origin.
    const response = await fetch(address, { headers, redirect: "manual", signal: AbortSignal.timeout(10_000) });
    const answered = Date.now();
    const size = (await limited(response))?.byteLength ?? 0;
    if (response.status !== 200) {
      const seen = `found at ${address}, but a second request returned HTTP ${response.status}`;
      return { finding: { subject: "card", verdict: "warning", seen } };
    }
    const said = Date.parse(response.headers.get("date") ?? "");
    const date = Number.isNaN(said) ? undefined : { said, asked, answered };
    const seen = `${address}, ${byteSize(size)}, in ${answered - asked} ms`;
    return { finding: { subject: "card", verdict: "ok", seen }, ...(date && { date }) };
  } catch (error) {
    const seen = `found at ${address}, but a second request failed: ${explain(error, { url: address })}`;
    return { finding: { subject: "card", verdict: "warning", seen } };
  }
}

function lint(card: object, at: string): readonly Finding[] {
  // Later checks call the addresses. A warning about the whole card concerns its signatures.
  const signed = "signatures" in card && Array.isArray(card.signatures) && card.signatures.length > 0;
  const found = lintCard(card).filter(
    ({ level, field }) =>
      level === "error" || !(/^supportedInterfaces\[\d+\]\.url$/.test(field) || (field === "" && !signed)),
  );
  const cure = `parley card lint ${quote(at)} lists them`;
  return (["error", "warning"] as const).flatMap((level) => {
    const all = found.filter((each) => each.level === level);
    const [first] = all;
    if (first === undefined) return [];
    const seen = `${all.length} ${level}${all.length === 1 ? "" : "s"} in the card: ${`${first.field} ${first.message}`.trim()}`;
    return [{ subject: "card", verdict: level === "error" ? "broken" : "warning", seen, cure } as const];
  });
}

/** Clock skew for a warning and for a failure, in milliseconds. Tokens and signatures usually tolerate a minute. */
const warningSkewMs = 5_000;
const maxSkewMs = 60_000;

/** Compares the server's clock with this machine's, by the header `Date` (RFC 9110 §6.6.1). */
export function checkClock({ said, asked, answered }: ServerDate): Finding {
  // The header has whole seconds, and was written between the request and the answer.
  const early = asked - (said + 1000);
  const late = said - answered;
  const off = Math.max(early, late, 0);
  if (off < warningSkewMs)
    return { subject: "clock", verdict: "ok", seen: "the clock of the server agrees with that of this machine" };
  const seen = `the clock of the server is ${duration(off)} ${early > late ? "behind" : "ahead of"} that of this machine`;
  const cure =
    "Synchronize both with NTP, for example with timedatectl set-ntp true. Otherwise tokens, signatures and timestamps of tasks are wrong";
  return { subject: "clock", verdict: off < maxSkewMs ? "warning" : "broken", seen, cure };
}

function duration(ms: number): string {
  const seconds = Math.round(ms / 1000);
  if (seconds < 120) return `${seconds} s`;
  return seconds < 7200 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds / 3600)} h`;
}
