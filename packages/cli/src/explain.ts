import { A2AError } from "@parley/a2a";
import { line } from "@parley/conform/terminal";

const systemReasons: Readonly<Record<string, string>> = {
  ECONNREFUSED: "connection refused",
  ECONNRESET: "the connection was reset",
  ENOTFOUND: "unknown host",
  EAI_AGAIN: "the host name could not be looked up",
  ETIMEDOUT: "no answer in time",
  EHOSTUNREACH: "no route to the host",
  ENETUNREACH: "no network",
  UND_ERR_CONNECT_TIMEOUT: "no answer in time",
  UND_ERR_SOCKET: "the other side closed the connection",
  DEPTH_ZERO_SELF_SIGNED_CERT: "its certificate is self-signed",
  SELF_SIGNED_CERT_IN_CHAIN: "its certificate is self-signed",
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: "its certificate cannot be verified",
  ERR_SSL_WRONG_VERSION_NUMBER: "it does not speak TLS there; is its URL http, not https?",
  CERT_HAS_EXPIRED: "its certificate has expired",
  ERR_TLS_CERT_ALTNAME_INVALID: "its certificate is for another host",
};

/** An error and what caused it, outermost first; of several causes (one an address that was tried) the first. */
function causes(error: unknown): readonly unknown[] {
  const chain: unknown[] = [];
  let next = error;
  while (next !== undefined && next !== null && chain.length < 10) {
    chain.push(next);
    next = next instanceof AggregateError ? next.errors[0] : next instanceof Error ? next.cause : undefined;
  }
  return chain;
}

function systemReason(error: unknown): string | undefined {
  for (const cause of causes(error)) {
    const code = cause instanceof Error && "code" in cause ? cause.code : undefined;
    const reason = typeof code === "string" ? systemReasons[code] : undefined;
    if (reason !== undefined) return reason;
    // In the words of Node's fetch, which has no code for it: ports of old services that a page must not reach.
    if (cause instanceof Error && cause.message === "bad port")
      return "browsers and fetch() call no such port, whoever listens there; serve the agent on another";
  }
  return undefined;
}

/** Who is to blame: an agent's card may lead to another host than the one that its user named. */
function blamed({ message }: A2AError, url: string | undefined): string {
  const words = /^(?:No answer from|No connection to|Nothing more from|The answer of) (\S+)/.exec(message);
  const named = words?.[1]?.replace(/:$/, "");
  if (named === undefined || !URL.canParse(named)) return url ?? "the agent";
  return url !== undefined && new URL(named).host === new URL(url).host ? url : named;
}

function explainA2A(error: A2AError, url: string | undefined): string {
  // It says itself what was tried, and where.
  if (error.metadata["tried"] !== undefined) return error.message;
  const { withheldFrom } = error.metadata;
  if (withheldFrom !== undefined)
    return `${withheldFrom} refuses the call, and was not told who calls: the agent's card names that origin, and you named ${url ?? "another"}. Pass --credential-origin ${withheldFrom} to send token and headers there`;
  const at = blamed(error, url);
  switch (error.code) {
    case "ConnectionFailed":
      return `cannot reach ${at}: ${systemReason(error) ?? error.message}`;
    case "ConnectionLost":
      return `the connection to ${at} broke off: ${systemReason(error) ?? error.message}`;
    case "Timeout":
      return `${at} did not answer in time: ${error.message}`;
    case "InvalidResponse":
      // The card is right, and has nothing of what the caller asked for.
      if (/ has no interface to use: .* was not asked for/.test(error.message)) return error.message;
      return `${at} does not speak A2A as it should: ${error.message}`;
    case "Unauthenticated":
      return `${at} wants to know who calls (401): pass --token TOKEN or set PARLEY_TOKEN`;
    case "PermissionDenied":
      return `${at} does not allow this (403): ${error.message}`;
    case "TooManyRequests":
    case "Unavailable": {
      const later = error.retryAfter === undefined ? "" : `; try again in ${error.retryAfter} s`;
      return `${at} cannot answer now: ${error.message}${later}`;
    }
    default: {
      const fields = error.fields.map((bad) => `\n  ${bad.field}: ${bad.description}`).join("");
      return `${error.message} (${error.code})${fields}`;
    }
  }
}

/** An error in words for the person at the terminal; with `verbose`, what caused it as well. */
export function explain(error: unknown, options: { readonly url?: string; readonly verbose?: boolean } = {}): string {
  const short =
    error instanceof A2AError ? explainA2A(error, options.url) : error instanceof Error ? error.message : String(error);
  // What a peer says may hold anything; its line breaks stay ours.
  const text = short.split("\n").map(line).join("\n");
  if (options.verbose !== true) return text;
  const chain = causes(error).map((cause) => (cause instanceof Error ? (cause.stack ?? cause.message) : String(cause)));
  return [text, ...chain.map((stack) => stack.split("\n").map(line).join("\n"))].join("\ncaused by: ");
}
