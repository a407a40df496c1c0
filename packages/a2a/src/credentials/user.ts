import { line } from "../base/display.ts";
import type { ServerMetadata } from "./authorization-server.ts";
import type { GrantCall } from "./server-calls.ts";

/* Who has logged in, by OpenID Connect. */

/** A user who has logged in. The authorization server vouches for it. The text is one line, without control characters. */
export interface LoggedInUser {
  /** The id of the user at the issuer. */
  readonly subject: string;
  /** The issuer. */
  readonly issuer: string;
  /** The full name. Absent: the server does not tell. */
  readonly name?: string;
  /** The address of e-mail. Absent: the server does not tell. */
  readonly email?: string;
}

/** The scopes that have a server tell who logs in (OpenID Connect Core §5.4), of those that it knows. */
export function userScopes({ scopes_supported: known }: ServerMetadata): readonly string[] {
  if (!Array.isArray(known) || !known.includes("openid")) return [];
  return ["openid", "profile", "email"].filter((scope) => known.includes(scope));
}

/** Longest name that is shown, in characters. */
const longestName = 200;

/**
 * The user of an ID token; `undefined` where it is not for this client, or its issuer is not known. The token endpoint itself has sent it,
 * over TLS or from this machine, which takes the place of its signature (OpenID Connect Core §3.1.3.7, 6).
 */
export async function userOf(idToken: unknown, call: GrantCall): Promise<LoggedInUser | undefined> {
  if (typeof idToken !== "string" || !call.server.identified) return undefined;
  const { decodeJwt } = await import("jose");
  try {
    const { iss, sub, aud, azp, exp, name, email } = decodeJwt(idToken);
    const { clientId } = call.options;
    const isOurs = [aud].flat().includes(clientId) && (azp === undefined || azp === clientId);
    const isValid = isOurs && iss === call.server.metadata.issuer && (exp ?? 0) * 1000 > call.clock.now();
    if (!isValid || typeof sub !== "string") return undefined;
    return {
      subject: line(sub, longestName),
      issuer: iss,
      ...(typeof name === "string" && { name: line(name, longestName) }),
      ...(typeof email === "string" && { email: line(email, longestName) }),
    };
  } catch {
    return undefined;
  }
}
