import type { AgentCard } from "@parley/a2a/internal/model/index";
import { lintCard } from "@parley/a2a/cards";
import { limited, readCard } from "../card-document.ts";
import { callHeaders, open, type CallOptions } from "../connection.ts";
import { explain } from "../errors.ts";
import { quote } from "../hints.ts";
import type { Io } from "../io.ts";
import { byteSize } from "../output/text.ts";
import type { Finding } from "./finding.ts";

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
    return { findings: [{ subject: "card", verdict: "broken", seen, cure: cureOf(seen, at) }] };
  }
  const address = document.address ?? at;
  const { finding, date } = await lookAt(address, callHeaders(options, io.env));
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

function cureOf(seen: string, at: string): string {
  if (/refused/.test(seen)) return "Start the server, or correct the port. A firewall may refuse too";
  if (/unknown host|looked up/.test(seen)) return "Correct the host name, or its DNS record";
  if (/certificate|TLS/.test(seen)) return "See tls above: clients refuse to connect";
  if (/in time|no route|no network/.test(seen)) return "Let the firewall and the proxy pass requests to this address";
  if (/\b40[13]\b/.test(seen)) return "Serve the card without authentication: clients read in it how to authenticate";
  const { origin } = new URL(at);
  return `The card has to be JSON at ${origin}/.well-known/agent-card.json, or below the path of the agent. A proxy has to pass that path on`;
}

/** Asks for the card once more, for its headers. */
async function lookAt(
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
