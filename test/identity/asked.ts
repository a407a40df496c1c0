import type { AuthenticationPlace, Authenticator } from "@parley/a2a/auth";
import { A2AError } from "@parley/a2a/model";
import type { Principal, UniversalRequest } from "@parley/a2a/protocol";
import type { PeerCertificate } from "@parley/a2a/internal/protocol/index";

/** Requests for authenticators, without a server. */

/** The agent that tokens of tests are for. */
export const agentUrl = "https://agents.example.com/weather";

/** Where the requests of tests go. */
export const place: AuthenticationPlace = {
  resources: [agentUrl, "https://agents.example.com"],
  metadataUrl: "https://agents.example.com/.well-known/oauth-protected-resource/weather",
  url: "https://agents.example.com/weather/message:send",
};

/** What a request of a test has. */
export interface Asked {
  readonly headers?: Readonly<Record<string, string>>;
  readonly certificate?: PeerCertificate;
  readonly method?: string;
  readonly place?: AuthenticationPlace;
}

/** Asks an authenticator who sends a request. */
export async function ask(authenticator: Authenticator, asked: Asked = {}): Promise<Principal> {
  const { headers = {}, certificate, method = "POST" } = asked;
  const request: UniversalRequest = {
    method,
    url: "/weather/message:send",
    header: (name) => headers[name],
    text: () => Promise.resolve(""),
    signal: new AbortController().signal,
    facts: { certificate },
  };
  return authenticator.authenticate(request, asked.place ?? place);
}

/** Asks with a bearer token. */
export function askWith(authenticator: Authenticator, token: string, asked: Asked = {}): Promise<Principal> {
  return ask(authenticator, { ...asked, headers: { authorization: `Bearer ${token}`, ...asked.headers } });
}

/** The error that a caller gets: its code and its challenge. Fails if the caller is accepted, and on any other error. */
export async function refusal(asking: Promise<Principal>): Promise<{ readonly code: string; readonly says: string }> {
  try {
    const principal = await asking;
    throw new Error(`The caller was let in as ${principal.subject}`);
  } catch (thrown) {
    if (thrown instanceof A2AError) return { code: thrown.code, says: thrown.challenge ?? thrown.message };
    throw thrown;
  }
}
