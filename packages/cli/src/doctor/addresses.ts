import { randomUUID } from "node:crypto";
import { type AgentCard, toA2AError } from "@parley/a2a/internal/model/index";
import { isLoopback } from "@parley/a2a/internal/base/index";
import { addressKind } from "@parley/a2a/internal/net/address";
import { callHeaders, connectWith, type CallOptions } from "../connection.ts";
import { explain } from "../errors.ts";
import type { Io } from "../io.ts";
import type { Finding } from "../output/show.ts";

type Interface = AgentCard["supportedInterfaces"][number];

/** Maximum number of addresses of a card to call. */
const maxAddresses = 20;

const spoken = ["JSONRPC", "HTTP+JSON", "GRPC"] as const;

/** Checks that clients can reach each address of the card, and that it speaks the declared protocol (A2A 1.0 §4.4.6). */
export async function* checkAddresses(
  io: Io,
  at: string,
  card: AgentCard,
  options: CallOptions,
): AsyncGenerator<Checked> {
  const all = card.supportedInterfaces;
  const chosen = all.filter(({ protocolBinding }) => protocolBinding === (options.binding ?? protocolBinding));
  for (const each of chosen.slice(0, maxAddresses)) {
    const problem = misplaced(new URL(at), each);
    yield problem === undefined ? await call(io, at, card, each, options) : { finding: problem, refused: false };
  }
  if (chosen.length > maxAddresses)
    yield found("unknown", `${chosen.length - maxAddresses} more addresses of the card were not called`);
}

/** The finding for one address, and whether it requires credentials. */
interface Checked {
  readonly finding: Finding;
  readonly refused: boolean;
}

function found(verdict: Finding["verdict"], seen: string, cure?: string): Checked {
  return { finding: { subject: "address", verdict, seen, ...(cure !== undefined && { cure }) }, refused: false };
}

function nameOf({ protocolBinding, protocolVersion, url }: Interface): string {
  return `${protocolBinding} ${protocolVersion} at ${url}`;
}

/** Finds an address that other machines cannot use, or cannot use safely. */
export function misplaced(asked: URL, each: Interface): Finding | undefined {
  const why = whyMisplaced(asked, each.url);
  if (why === undefined) return undefined;
  const cure = `Set publicUrl of the server (--public-url) to ${asked.origin}, the address that clients use`;
  return { subject: "address", verdict: "broken", seen: `${nameOf(each)} ${why}`, cure };
}

function whyMisplaced(asked: URL, url: string): string | undefined {
  const host = hostOf(url);
  if (host === undefined) return "is not a valid address";
  if (isInternal(host) && !isInternal(hostOf(asked.href) ?? ""))
    return "is an internal address, which other machines cannot reach";
  return asked.protocol === "https:" && /^http:/i.test(url)
    ? "is not encrypted, unlike the card. Clients send no credentials there"
    : undefined;
}

/** The host of an address. gRPC addresses have no scheme. */
function hostOf(address: string): string | undefined {
  const url = /^[a-z][a-z\d+.-]*:\/\//i.test(address) ? address : `grpc://${address}`;
  return URL.canParse(url) ? new URL(url).hostname.replace(/^\[|\]$/g, "") || undefined : undefined;
}

function hostAndPort(address: string, scheme: string): string {
  const { hostname, port, protocol } = new URL(
    /^[a-z][a-z\d+.-]*:\/\//i.test(address) ? address : `${scheme}//${address}`,
  );
  return `${hostname}:${port || (protocol === "https:" ? "443" : "80")}`;
}

function isInternal(host: string): boolean {
  if (host === "localhost" || host.endsWith(".localhost") || host.endsWith(".local") || host.endsWith(".internal"))
    return true;
  const kind = addressKind(host);
  return kind !== undefined && kind !== "global";
}

/** Requests a task that does not exist, which changes nothing. The right error proves that the agent speaks the protocol. */
async function call(io: Io, at: string, card: AgentCard, each: Interface, options: CallOptions): Promise<Checked> {
  const name = nameOf(each);
  const binding = spoken.find((known) => known === each.protocolBinding);
  if (binding === undefined) return found("unknown", `${name} was not called: parley does not support this binding`);
  const started = performance.now();
  const answered = (more = ""): Checked =>
    found("ok", `${name} answers${more}, in ${Math.round(performance.now() - started)} ms`);
  try {
    // The other addresses stay on the card, because their schemes determine whether gRPC uses TLS.
    const others = card.supportedInterfaces.filter(({ protocolBinding }) => protocolBinding !== binding);
    const only = { ...card, supportedInterfaces: [each, ...others] };
    const client = await connectWith(
      io,
      only,
      { ...options, binding },
      { headers: callHeaders(options, io.env), credentialOrigins: [new URL(at).origin], retry: false, timeout: 10_000 },
    );
    await client.getTask(`parley-doctor-${randomUUID()}`);
    return found("broken", `${name} returned a task that cannot exist: the server there is not an agent`);
  } catch (thrown) {
    const error = toA2AError(thrown);
    switch (error.code) {
      case "TaskNotFound":
        return answered();
      case "PermissionDenied":
        return found(
          "warning",
          `${name} does not allow the call: ${error.message}`,
          "Add the host name to allowedHosts of the server, or check its authorizer",
        );
      case "Unauthenticated":
        return { ...answered(", and requires credentials"), refused: true };
      default:
        return found("broken", `${name}: ${explain(thrown, { url: each.url })}`, cureOf(error.code, new URL(at), each));
    }
  }
}

function cureOf(code: string, asked: URL, { url, protocolBinding }: Interface): string {
  switch (code) {
    case "VersionNotSupported":
      return "The card names a version that the server does not support. Correct protocolVersion, or the versions of the server";
    case "ConnectionFailed":
    case "ConnectionLost":
    case "Timeout":
      if (hostAndPort(url, asked.protocol) !== hostAndPort(asked.href, asked.protocol))
        return `Make this address reachable, or set publicUrl of the server (--public-url) to ${asked.origin}, where its card is`;
      if (protocolBinding === "GRPC")
        return "Configure the proxy for gRPC (nginx: grpc_pass), or remove gRPC from the card (the option grpc, --grpc)";
      return "Make this address reachable through the proxy and the firewall, or remove it from the card: clients try it first";
    case "MethodNotFound":
    case "InvalidResponse":
      return "Another server answers there. Check that the proxy forwards the whole path, and which path the server expects (basePath)";
    default:
      return "Check the log of the server";
  }
}

/** Checks that clients of current versions can call (A2A 1.0 §3.6). */
export function checkVersions({ supportedInterfaces }: AgentCard): Finding {
  const listed = [...new Set(supportedInterfaces.map(({ protocolVersion }) => protocolVersion))];
  const seen = `A2A ${listed.join(", ")}`;
  if (listed.some((version) => version.startsWith("1."))) return { subject: "versions", verdict: "ok", seen };
  const cure = "Also serve 1.0: clients of the current version find no address on this card";
  return { subject: "versions", verdict: "warning", seen, cure };
}

interface Refusal {
  readonly why: string;
  readonly cure: string;
}

/** Finds clients that reject the card although the specification allows it. `asked`: the URL of the card. */
export function checkClients(asked: URL, card: AgentCard): readonly Finding[] {
  const refusal = adkForPython(asked, card);
  if (refusal === undefined) return [{ subject: "clients", verdict: "ok", seen: "ADK for Python accepts this card" }];
  const { why, cure } = refusal;
  return [
    { subject: "clients", verdict: "warning", seen: `ADK for Python (from 2.13) rejects this card: ${why}`, cure },
  ];
}

/** ADK for Python checks every address of a card, even those that it would not use. */
function adkForPython({ origin, protocol, hostname }: URL, { supportedInterfaces }: AgentCard): Refusal | undefined {
  const rule = "neither https, nor http on a loopback host";
  if (protocol !== "https:" && !isLoopback(hostname)) return { why: `${origin} is ${rule}`, cure: "Serve over https" };
  for (const { protocolBinding, url } of supportedInterfaces) {
    const address = `${protocolBinding} at ${url}`;
    const parsed = /^[a-z][a-z\d+.-]*:\/\//i.test(url) && URL.canParse(url) ? new URL(url) : undefined;
    if (parsed === undefined || (parsed.protocol !== "https:" && !isLoopback(parsed.hostname))) {
      const cure =
        protocolBinding === "GRPC"
          ? "Remove gRPC from the card for such clients: its addresses have no scheme (the option grpc of serve(), --grpc)"
          : "Serve this address over https";
      return { why: `${address} is ${rule}`, cure };
    }
    if (parsed.origin !== origin) {
      const cure = `Serve it at ${origin}, where the card is, or remove it from the card`;
      return { why: `${address} is not at the origin of the card, ${origin}`, cure };
    }
  }
  return undefined;
}
