import {
  authorizationCode,
  clientCredentials,
  deviceCode,
  type CredentialProvider,
  type DevicePrompt,
  type LoggedInUser,
} from "@parley/a2a/credentials";
import { defined } from "@parley/a2a/internal/base/defined";
import { line } from "@parley/a2a/internal/base/display";
import { loopbackRedirect } from "@parley/node";
import { CommandError } from "./errors.ts";
import type { NewLogin } from "./logins/logins.ts";
import {
  endpointsOf,
  flowsOf,
  NewTokens,
  oauthOptions,
  type EnteredLogin,
  type Flow,
  type NamedScheme,
} from "./logins/providers.ts";

/** The user who logs in: on a terminal, or on a page of the console. */
export interface LoginUser {
  /** Asks for a text. */
  answer(question: string, hidden: boolean): Promise<string>;
  /** Shows the page of an authorization server. */
  openPage(url: string): Promise<void>;
  showCode(prompt: DevicePrompt): void;
  /** Whether a browser would open on a machine other than the user's. */
  readonly isRemote: boolean;
}

/** Options of `parley login` for OAuth. */
export interface OAuthLoginOptions {
  readonly flow?: Flow;
  readonly clientId?: string;
  readonly withSecret?: boolean;
  readonly issuer?: string;
  readonly scope?: readonly string[];
  readonly resource?: boolean;
  readonly dpop?: boolean;
}

/** The flow of `--flow`, or the first of the card that works on this machine. */
function flowFor({ name, scheme }: NamedScheme, { flow }: OAuthLoginOptions, isRemote: boolean): Flow {
  if (flow !== undefined) return flow;
  const known = flowsOf(scheme);
  const [first] = isRemote && known.includes("device") ? ["device" as const] : known;
  if (first === undefined) throw new CommandError(`${line(name)} has no supported OAuth flow`);
  return first;
}

/** Asks for the client of an OAuth login. The user logs in at the first call. */
export async function enterOAuth(
  user: LoginUser,
  base: NewLogin,
  named: NamedScheme,
  options: OAuthLoginOptions,
): Promise<EnteredLogin> {
  const flow = flowFor(named, options, user.isRemote);
  const clientId = options.clientId ?? (await user.answer(`Client ID for ${base.url}: `, false));
  const withSecret = flow === "client" || options.withSecret === true;
  const tokens = new NewTokens(
    withSecret ? { clientSecret: await user.answer(`Secret of client ${line(clientId)}: `, true) } : {},
  );
  const login: NewLogin = {
    ...base,
    kind: "oauth2",
    settings: {
      flow,
      clientId,
      endpoints: endpointsOf(named.scheme),
      ...defined({ issuer: options.issuer, scopes: options.scope?.join(" ") }),
      ...(options.resource === false && { resource: "" }),
      ...(withSecret && { hasSecret: "yes" }),
      ...(options.dpop === true && { dpop: "yes" }),
    },
  };
  const oauth = await oauthOptions(login, async () => tokens.secrets, tokens);
  let known: LoggedInUser | undefined;
  return {
    provider: providerFor(user, flow, oauth, (told) => (known = told)),
    login() {
      const who = flow === "client" ? clientId : nameOf(known);
      const { resource, issuer } = tokens.key ?? {};
      // Later commands may call a path below the agent with a token for this resource.
      const settings = { ...login.settings, ...defined({ resource }) };
      return { ...login, settings, account: issuer === undefined ? who : `${who} at ${issuer}` };
    },
    secrets: () => tokens.secrets,
  };
}

/** The display name of the user. Not every authorization server provides it. */
function nameOf(user: LoggedInUser | undefined): string {
  if (user === undefined) return "unknown user";
  const { subject, name, email } = user;
  return name !== undefined && email !== undefined ? `${name} <${email}>` : (name ?? email ?? subject);
}

function providerFor(
  user: LoginUser,
  flow: Flow,
  oauth: Awaited<ReturnType<typeof oauthOptions>>,
  onUser: (user: LoggedInUser) => void,
): CredentialProvider {
  if (flow === "client") return clientCredentials(oauth);
  if (flow === "device") return deviceCode({ ...oauth, onUser, prompt: (prompt) => user.showCode(prompt) });
  return authorizationCode({ ...oauth, onUser, redirect: loopbackRedirect({ open: (url) => user.openPage(url) }) });
}
