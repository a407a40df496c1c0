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
import { byteSize, quote } from "../output/text.ts";

/* Checks of the server itself: its TLS, its card, its clock. */

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
    yield { subject: "tls", verdict: "broken", seen: `no encrypted connection: ${reason}`, cure: tlsCureOf(reason) };
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

function tlsCureOf(reason: string): string {
  if (/self-signed|cannot be verified/.test(reason)) {
    return "Serve a certificate of a public authority with its intermediates, or give the authority to clients: NODE_EXTRA_CA_CERTS=ca.pem";
  }
  if (/expired/.test(reason)) return "Renew the certificate, and load it: files of tls are read again when they change";
  if (/another host/.test(reason)) return "Get a certificate for this host name, or correct the name";
  if (/does not speak TLS/.test(reason)) return "Call http:// there, or end TLS at the server or at a proxy";
  return "See that the server, or the proxy in front of it, listens there with TLS";
}

/** What the card's server says of the time, and when it was asked. Milliseconds since the Unix epoch, on the clock of this machine. */
export interface ServerDate {
  readonly said: number;
  readonly asked: number;
  readonly answered: number;
}

/** The card, as far as it was found. */
export interface FoundCard {
  readonly findings: readonly Finding[];
  /** In the form of 1.0. Absent where a client cannot use it. */
  readonly card?: AgentCard;
  readonly date?: ServerDate;
}

/** Whether the card is where clients look for it, and whether they can use it (A2A 1.0 §8.2). */
export async function checkCard(io: Io, at: string, options: CallOptions): Promise<FoundCard> {
  const anyBinding = withoutBinding(options);
  let document: Awaited<ReturnType<typeof readCard>>;
  try {
    document = await readCard(io, at, anyBinding);
  } catch (error) {
    const seen = explain(error, { url: at });
    return { findings: [{ subject: "card", verdict: "broken", seen, cure: cardCureOf(seen, at) }] };
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

/** The addresses are checked one by one, so the card is read without a choice. */
function withoutBinding({ binding: _, ...options }: CallOptions): CallOptions {
  return options;
}

function cardCureOf(seen: string, at: string): string {
  if (/refused/.test(seen)) return "Start the server, or correct the port. A firewall may refuse too";
  if (/unknown host|looked up/.test(seen)) return "Correct the host name, or its DNS record";
  if (/certificate|TLS/.test(seen)) return "See tls above: clients refuse to connect";
  if (/in time|no route|no network/.test(seen)) return "Let the firewall and the proxy pass requests to this address";
  if (/\b40[13]\b/.test(seen)) return "Serve the card without authentication: clients read in it how to authenticate";
  const { origin } = new URL(at);
  return `The card has to be JSON at ${origin}/.well-known/agent-card.json, or below the path of the agent. A proxy has to pass that path on`;
}

/** Asks for the card once more, for its headers. */
async function probe(
  address: string,
  headers: Readonly<Record<string, string>>,
): Promise<{ readonly finding: Finding; readonly date?: ServerDate }> {
  const asked = Date.now();
  try {
    // As clients do, it follows no redirect: the headers may have credentials, which are for this origin alone.
    const response = await fetch(address, { headers, redirect: "manual", signal: AbortSignal.timeout(10_000) });
    const answered = Date.now();
    const size = (await limited(response))?.byteLength ?? 0;
    if (response.status !== 200) {
      const seen = `found at ${address}, but not a second time: HTTP ${response.status}`;
      return { finding: { subject: "card", verdict: "warning", seen } };
    }
    const said = Date.parse(response.headers.get("date") ?? "");
    const date = Number.isNaN(said) ? undefined : { said, asked, answered };
    const seen = `${address}, ${byteSize(size)}, in ${answered - asked} ms`;
    return { finding: { subject: "card", verdict: "ok", seen }, ...(date && { date }) };
  } catch (error) {
    const seen = `found at ${address}, but not a second time: ${explain(error, { url: address })}`;
    return { finding: { subject: "card", verdict: "warning", seen } };
  }
}

function lint(card: object, at: string): readonly Finding[] {
  // Addresses are called, which tells more. A warning about the whole card is about what its signatures cover.
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

/** From how many milliseconds on a difference is worth a warning. Tokens and signatures are usually allowed a minute. */
const tolerated = 5_000;
const refused = 60_000;

/** How far the clock of the server differs from that of this machine, from the `Date` of an answer (RFC 9110 §6.6.1). */
export function checkClock({ said, asked, answered }: ServerDate): Finding {
  // The header has whole seconds, and was written somewhere between the request and the answer.
  const early = asked - (said + 1000);
  const late = said - answered;
  const off = Math.max(early, late, 0);
  if (off < tolerated)
    return { subject: "clock", verdict: "ok", seen: "the clocks of the server and of this machine agree" };
  const seen = `the clock of the server is ${duration(off)} ${early > late ? "behind" : "ahead of"} that of this machine`;
  const cure =
    "Set both by NTP, such as with timedatectl set-ntp true. Tokens, signatures and times of tasks are wrong otherwise";
  return { subject: "clock", verdict: off < refused ? "warning" : "broken", seen, cure };
}

function duration(ms: number): string {
  const seconds = Math.round(ms / 1000);
  if (seconds < 120) return `${seconds} s`;
  return seconds < 7200 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds / 3600)} h`;
}
