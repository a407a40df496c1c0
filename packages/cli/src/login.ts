import type { AgentCard } from "@parley/a2a/internal/model/index";
import type { Client } from "@parley/a2a/internal/client/index";
import { signIn } from "@parley/a2a/credentials";
import { line } from "@parley/a2a/internal/base/display";
import { hasCode } from "@parley/a2a/model";
import { isLoopback } from "@parley/a2a/internal/base/index";
import { answerTo } from "./files.ts";
import { callHeaders, connectWith, type CallOptions } from "./connection.ts";
import { CommandError, UsageError } from "./errors.ts";
import type { Io } from "./io.ts";
import type { LoginUser, OAuthLoginOptions } from "./login-oauth.ts";
import { Logins, loginUrl, type Login, type NewLogin } from "./logins/logins.ts";
import {
  alternatives,
  flowsOf,
  kindOf,
  simpleProvider,
  type EnteredLogin,
  type NamedScheme,
} from "./logins/providers.ts";
import { schemeKind } from "./output/show.ts";
import { maxLength, print, type Style, table } from "./output/text.ts";

export interface LoginOptions extends CallOptions, OAuthLoginOptions {
  readonly scheme?: string;
  readonly withToken?: boolean;
  readonly username?: string;
}

export interface ListLoginsOptions {
  readonly json?: boolean;
}

export function loginsOf(io: Io): Logins {
  const logins = Logins.of(io);
  if (logins === undefined) {
    throw new CommandError("cannot store logins: neither HOME nor XDG_CONFIG_HOME is set");
  }
  return logins;
}

/** `parley login`. Returns the exit code. */
export async function login(io: Io, at: string, options: LoginOptions): Promise<number> {
  const target = await loginTarget(io, at, options);
  const user = onTerminal(io);
  const entered: EnteredLogin[] = [];
  for (const scheme of schemesFor(target.card, options, user))
    entered.push(await enter(user, target.url, scheme, options));
  const interrupt = new AbortController();
  const release = io.onInterrupt(() => interrupt.abort());
  try {
    await complete(io, target, options, entered, interrupt.signal);
  } catch (error) {
    if (interrupt.signal.aborted) return 130;
    throw error;
  } finally {
    release();
  }
  for (const one of entered) await keep(io, target.logins, one);
  return 0;
}

type LoginTarget = Readonly<Record<"at" | "url", string> & { logins: Logins; card: AgentCard }>;

/** The agent to log in to, and the URL of the login. */
export async function loginTarget(io: Io, at: string, options: CallOptions): Promise<LoginTarget> {
  const url = loginUrl(at);
  if (!url.startsWith("https:") && !isLoopback(new URL(url).hostname)) {
    throw new UsageError(`${url} must be https: anyone on the network could read your secret`);
  }
  const logins = loginsOf(io);
  const { card } = await connectWith(io, at, options, { headers: callHeaders(options, io.env) });
  return { at, url, logins, card };
}

/** Gets the credentials of logins, and tests them. */
export async function complete(
  io: Io,
  { at, card }: LoginTarget,
  options: CallOptions,
  entered: readonly EnteredLogin[],
  signal: AbortSignal,
): Promise<void> {
  const credentials = entered.map(({ provider }) => provider);
  try {
    await signIn(card, at, credentials, { signal });
  } catch (error) {
    if (hasCode(error, "Unauthenticated")) throw new CommandError(`login failed: ${error.message}`, { cause: error });
    throw error;
  }
  await tryOut(await connectWith(io, at, options, { headers: callHeaders(options, io.env), credentials }), signal);
}

function onTerminal(io: Io): LoginUser {
  return {
    isRemote: io.env["SSH_CONNECTION"] !== undefined,
    answer: (question, hidden) => answerTo(io, question, hidden),
    showCode({ verificationUri, verificationUriComplete, userCode }) {
      const or = verificationUriComplete === undefined ? "" : `\nOr open ${verificationUriComplete}`;
      io.stderr.write(`Open ${verificationUri} and enter the code ${userCode}${or}\n`);
    },
    async openPage(url) {
      const shown = line(url, Number.POSITIVE_INFINITY);
      io.stderr.write(`Opening a page to log in. If it does not open, visit:\n  ${shown}\n`);
      // If no browser opens, the user can open the page.
      await io.openPage(url).catch(() => undefined);
    },
  };
}

async function keep(io: Io, logins: Logins, entered: EnteredLogin): Promise<void> {
  const kept = await logins.save(entered.login(), entered.secrets());
  const where = kept.secretsIn === "keychain" ? "the keychain" : `${logins.pathOf(kept)}, which only you can read`;
  const who = kept.account === undefined ? "" : ` as ${line(kept.account, maxLength.name)}`;
  io.stderr.write(`Logged in to ${kept.url}${who}. Stored the secret in ${where}.\n`);
}

/** The schemes to log in with: the first requirement of the card that this program supports. */
function schemesFor(card: AgentCard, options: LoginOptions, { isRemote }: LoginUser): readonly NamedScheme[] {
  const { scheme: wanted } = options;
  const all = alternatives(card);
  const name = line(card.name, maxLength.name);
  if (all.length === 0) throw new CommandError(`the card of ${name} requires no credentials`);
  if (wanted !== undefined) {
    const one = all.find((schemes) => schemes.some(({ name }) => name === wanted));
    if (one !== undefined) return one;
    throw new UsageError(`the card of ${name} has no scheme ${wanted}; it has ${namesOf(all)}`);
  }
  const remote = options.flow === undefined && isRemote;
  for (const asked of [...(remote ? [{ ...options, flow: "device" as const }] : []), options]) {
    const usable = all.find((schemes) => schemes.every(({ scheme }) => usableKind(scheme, asked) !== undefined));
    if (usable !== undefined) return usable;
  }
  throw new CommandError(
    `no supported security scheme in the card of ${name}: ${namesOf(all)}. Pass --header or --token with each command`,
  );
}

function namesOf(all: readonly (readonly NamedScheme[])[]): string {
  const names = all.flat().map(({ name, scheme }) => `${line(name, maxLength.name)} (${line(schemeKind(scheme))})`);
  return [...new Set(names)].slice(0, 20).join(", ");
}

/** The kind of login for a scheme; `undefined` if the options exclude it. */
function usableKind(
  scheme: NamedScheme["scheme"],
  { withToken, issuer, flow }: LoginOptions,
): Login["kind"] | undefined {
  const kind = kindOf(scheme);
  if (flow !== undefined && !(kind === "oauth2" && (issuer !== undefined || flowsOf(scheme).includes(flow))))
    return undefined;
  const takesTokens = kind === "bearer" || kind === "oauth2";
  if (withToken === true) return takesTokens ? "bearer" : undefined;
  return takesTokens && issuer !== undefined ? "oauth2" : kind;
}

/** Asks for the credentials of a scheme. */
export async function enter(
  user: LoginUser,
  url: string,
  named: NamedScheme,
  options: LoginOptions,
): Promise<EnteredLogin> {
  const { name, scheme } = named;
  const kind = usableKind(scheme, options);
  const shown = line(name, maxLength.name);
  if (kind === undefined) {
    throw new UsageError(`unsupported security scheme ${shown} (${line(schemeKind(scheme))})`);
  }
  const base: NewLogin = {
    url,
    scheme: name,
    kind,
    since: new Date().toISOString(),
    settings: {},
    origins: options.credentialOrigin ?? [],
  };
  if (kind === "oauth2") {
    const { enterOAuth } = await import("./login-oauth.ts");
    return enterOAuth(user, base, named, options);
  }
  if (kind === "basic") {
    const username = options.username ?? (await user.answer(`User name at ${url}: `, false));
    const secret = await user.answer(`Password at ${url}: `, true);
    return simple({ ...base, account: username, settings: { username } }, secret);
  }
  const secret = await user.answer(`${kind === "apiKey" ? "API key" : "Token"} for ${url} (${shown}): `, true);
  // The error of fetch() would show the secret.
  if (!/^[\x21-\x7e]+$/.test(secret))
    throw new UsageError("the secret must consist of printable ASCII characters without spaces");
  return simple(base, secret);
}

function simple(login: NewLogin, secret: string): EnteredLogin {
  const secrets = { secret };
  const provider = simpleProvider(login, async () => secrets);
  return { provider, login: () => login, secrets: () => secrets };
}

/** Tests the credentials with a call that every agent answers. */
async function tryOut(client: Client, signal: AbortSignal): Promise<void> {
  try {
    if (client.card.capabilities.extendedAgentCard === true) await client.getExtendedAgentCard({ signal });
    else await client.listTasks({ pageSize: 1, historyLength: 0 }, { signal });
  } catch (error) {
    // The error of a withheld token already says what to do.
    if (hasCode(error, "Unauthenticated") && error.metadata["withheldFrom"] === undefined) {
      throw new CommandError(`the agent rejected the credentials: ${error.message}`, { cause: error });
    }
    // Any other error means that the agent accepted the credentials.
    if (hasCode(error, "Unauthenticated", "ConnectionFailed", "Timeout", "InvalidResponse")) throw error;
  }
}

/** `parley logout`. Returns the exit code. */
export async function logout(io: Io, at: string | undefined, { all }: { readonly all?: boolean }): Promise<number> {
  if ((at === undefined) !== (all === true)) throw new UsageError("pass either [url], the URL of an agent, or --all");
  const logins = loginsOf(io);
  const found = at === undefined ? await logins.list() : await logins.for(at);
  if (found.length === 0) {
    io.stderr.write(at === undefined ? "You are not logged in anywhere.\n" : `You are not logged in to ${at}.\n`);
    return 0;
  }
  for (const one of found) {
    await logins.remove(one);
    io.stderr.write(`Logged out of ${line(one.url)} (${line(one.scheme, maxLength.name)}).\n`);
  }
  return 0;
}

const kindNames: Readonly<Record<Login["kind"], string>> = {
  apiKey: "API key",
  basic: "HTTP Basic",
  bearer: "token",
  oauth2: "OAuth 2",
};

/** `parley whoami`. Returns 1 if there is no login for the agent. */
export async function whoami(io: Io, at: string | undefined, { json }: ListLoginsOptions): Promise<number> {
  const logins = loginsOf(io);
  const found = at === undefined ? await logins.list() : await logins.for(at);
  if (found.length === 0 && json !== true)
    io.stderr.write(`You are not logged in${at === undefined ? "" : ` to ${at}`}.\n`);
  else print(io, { json: json === true }, { logins: found }, (style) => showLogins(found, style));
  return found.length === 0 && at !== undefined ? 1 : 0;
}

function showLogins(logins: readonly Login[], style: Style): string {
  const rows = logins.map(({ url, scheme, kind, account = "", secretsIn, since }) => [
    line(url),
    line(scheme, maxLength.name),
    kindNames[kind],
    line(account, maxLength.name),
    secretsIn,
    line(since),
  ]);
  const header = ["AGENT", "SCHEME", "KIND", "ACCOUNT", "SECRET IN", "SINCE"];
  return table([header, ...rows], (cell, row) => (row === 0 ? style("dim", cell) : cell));
}
