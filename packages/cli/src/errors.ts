import { type A2AError, toA2AError } from "@parley/a2a/internal/model/index";
import { cut, line } from "@parley/a2a/internal/base/display";
import { quote } from "./invocation.ts";
import { maxLength } from "./output/text.ts";

/** Invalid usage. Exit code 2. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

/** A command failed, for example because of a file or an agent module. The message is for the user. Exit code 1. */
export class CommandError extends Error {
  override readonly name = "CommandError";
}

const systemReasons: Readonly<Record<string, string>> = {
  ECONNREFUSED: "connection refused",
  ECONNRESET: "connection reset",
  ENOTFOUND: "unknown host",
  EAI_AGAIN: "host name lookup failed",
  ETIMEDOUT: "timed out",
  EHOSTUNREACH: "no route to host",
  ENETUNREACH: "network unreachable",
  UND_ERR_CONNECT_TIMEOUT: "timed out",
  UND_ERR_SOCKET: "the server closed the connection",
  DEPTH_ZERO_SELF_SIGNED_CERT: "its certificate is self-signed",
  SELF_SIGNED_CERT_IN_CHAIN: "its certificate is self-signed",
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: "its certificate cannot be verified",
  ERR_SSL_WRONG_VERSION_NUMBER: "the server does not use TLS; try http:// instead of https://",
  CERT_HAS_EXPIRED: "its certificate has expired",
  ERR_TLS_CERT_ALTNAME_INVALID: "its certificate is for another host",
};

/** An error and its causes, outermost first. An AggregateError has one error per address; only the first is used. */
function causes(error: unknown): readonly unknown[] {
  const chain: unknown[] = [];
  let next = error;
  while (next !== undefined && next !== null && chain.length < 10) {
    chain.push(next);
    next = next instanceof AggregateError ? next.errors[0] : next instanceof Error ? next.cause : undefined;
  }
  return chain;
}

/** The code of a system error: `ENOENT`. */
export function codeOf(error: unknown): unknown {
  return error instanceof Error && "code" in error ? error.code : undefined;
}

export function systemReason(error: unknown): string | undefined {
  for (const cause of causes(error)) {
    const code = codeOf(cause);
    const reason = typeof code === "string" ? systemReasons[code] : undefined;
    if (reason !== undefined) return reason;
    // fetch() blocks ports of some old services; its error has no code.
    if (cause instanceof Error && cause.message === "bad port")
      return "browsers and fetch() block this port; serve the agent on another one";
  }
  return undefined;
}

/** The reason in a few words, and how long the client retried. */
function reasonOf(error: A2AError): string {
  const reason = systemReason(error);
  if (reason === undefined) return error.message;
  const [retried = ""] = / \(gave up after [^()]*\)$/.exec(error.message) ?? [];
  return `${reason}${retried}`;
}

/** The address that an error names. The card may name another host than the user. */
function addressOf({ message }: A2AError, url: string | undefined): string {
  const words = /^(?:No answer from|No connection to|Nothing more from|The answer of) (\S+)/.exec(message);
  const named = words?.[1]?.replace(/:$/, "");
  if (named === undefined || !URL.canParse(named)) return url ?? "the agent";
  return url !== undefined && new URL(named).host === new URL(url).host ? url : named;
}

function explainA2A(error: A2AError, url: string | undefined, program: string): string {
  // The message names the addresses.
  if (error.metadata["tried"] !== undefined) return error.message;
  const { withheldFrom } = error.metadata;
  if (withheldFrom !== undefined)
    return `${withheldFrom} rejected the call. Your token and headers were not sent to it, because only the card of ${url ?? "the agent"} names that origin. To send them, pass --credential-origin ${withheldFrom}`;
  const at = addressOf(error, url);
  switch (error.code) {
    case "ConnectionFailed":
      return `cannot reach ${at}: ${reasonOf(error)}`;
    case "ConnectionLost":
      return `lost the connection to ${at}: ${reasonOf(error)}`;
    case "Timeout":
      return `${at} did not answer in time: ${error.message}`;
    case "InvalidResponse":
      // The card is valid, but no interface matches the options.
      if (/ has no interface to use\b.* was not asked for/.test(error.message)) return error.message;
      return `${at} does not follow the A2A protocol: ${error.message}`;
    case "Unauthenticated":
      return `${at} ${refusalOf(error)} (401): ${url === undefined ? "log in" : `${program} login ${quote(url)}`}, or pass --token TOKEN or set PARLEY_TOKEN`;
    case "PermissionDenied":
      return `${at} does not allow this call (403): ${error.message}`;
    case "TooManyRequests":
    case "Unavailable": {
      const later = error.retryAfter === undefined ? "" : `; try again in ${error.retryAfter} s`;
      return `${at} is unavailable: ${error.message}${later}`;
    }
    default: {
      const fields = error.fields.map((bad) => `\n  ${bad.field}: ${bad.description}`).join("");
      return `${error.message} (${error.code})${fields}`;
    }
  }
}

/** The reason of a 401, such as an expired token. */
function refusalOf({ message }: A2AError): string {
  return /^Authentication required\b/.test(message) ? "requires credentials" : `rejected the credentials: ${message}`;
}

function lines(text: string): string {
  return text
    .split("\n")
    .map((each) => line(each))
    .join("\n");
}

/** An error as text for the terminal; with `verbose`, also the stacks of its causes. */
export function explain(
  error: unknown,
  options: { readonly url?: string; readonly verbose?: boolean; readonly program?: string } = {},
): string {
  const known = toA2AError(error);
  const short =
    known === error
      ? explainA2A(known, options.url, options.program ?? "parley")
      : error instanceof Error
        ? error.message
        : String(error);
  // A server may send anything, so each line is made safe to print.
  const text = lines(cut(short, maxLength.error));
  if (options.verbose !== true) return text;
  const chain = causes(error).map((cause) => (cause instanceof Error ? (cause.stack ?? cause.message) : String(cause)));
  return [text, ...chain.map((stack) => lines(cut(stack, maxLength.error)))].join("\ncaused by: ");
}
