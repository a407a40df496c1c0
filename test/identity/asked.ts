import type { AuthenticationPlace, Authenticator } from "@parley/a2a/auth";
import { A2AError } from "@parley/a2a/model";
import type { Principal, UniversalRequest } from "@parley/a2a/protocol";
import type { PeerCertificate } from "@parley/a2a/internal/protocol/index";

/** Requests to authenticators, without a server. */

/** The audience of the tests' tokens. */
export const agentUrl = "https://agents.example.com/weather";

/** The target of the tests' requests. */
export const place: AuthenticationPlace = {
  resources: [agentUrl, "https://agents.example.com"],
  metadataUrl: "https://agents.example.com/.well-known/oauth-protected-resource/weather",
  url: "https://agents.example.com/weather/message:send",
};

/** The content of a test's request. */
export interface Asked {
  readonly headers?: Readonly<Record<string, string>>;
  readonly certificate?: PeerCertificate;
  readonly method?: string;
  readonly place?: AuthenticationPlace;
}

/** Authenticates a request. Returns its caller. */
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

/** Authenticates a request with a bearer token. */
export function askWith(authenticator: Authenticator, token: string, asked: Asked = {}): Promise<Principal> {
  return ask(authenticator, { ...asked, headers: { authorization: `Bearer ${token}`, ...asked.headers } });
}

/** The code and the challenge of the error that a caller gets. Fails if the caller is accepted, and on any other error. */
export async function refusal(asking: Promise<Principal>): Promise<{ readonly code: string; readonly says: string }> {
  try {
    const principal = await asking;
    throw new Error(`The caller was let in as ${principal.subject}`);
  } catch (thrown) {
    if (thrown instanceof A2AError) return { code: thrown.code, says: thrown.challenge ?? thrown.message };
    throw thrown;
  }
}
