import type { AgentCard } from "@parley/a2a";
import type { Client } from "@parley/a2a/client";
import type { CredentialProvider } from "@parley/a2a/credentials";
import { jsonLine, line } from "@parley/a2a/display";
import { hasCode } from "@parley/a2a/model";
import { isLoopback } from "@parley/a2a/protocol";
import { answerTo } from "./ask.ts";
import { callHeaders, connectWith, type CallOptions } from "./connection.ts";
import { CommandError, UsageError } from "./errors.ts";
import type { Io } from "./io.ts";
import { Logins, loginUrl, type Login, type Secrets } from "./logins/logins.ts";
import { providerOf } from "./logins/providers.ts";
import { alternatives, kindOf, type NamedScheme } from "./logins/schemes.ts";
import { schemeKind } from "./output/card.ts";
import { longest, styleFor, table } from "./output/text.ts";

export interface LoginOptions extends CallOptions {
  readonly scheme?: string;
  readonly withToken?: boolean;
  readonly username?: string;
}

export interface ListLoginsOptions {
  readonly json?: boolean;
}

type NewLogin = Omit<Login, "secretsIn">;

function loginsOf(io: Io): Logins {
  const logins = Logins.of(io.env);
  if (logins === undefined) {
    throw new CommandError("there is no place for logins: neither HOME nor XDG_CONFIG_HOME is set");
  }
  return logins;
}

/** `parley login`. Returns the exit code. */
export async function login(io: Io, at: string, options: LoginOptions): Promise<number> {
  const url = loginUrl(at);
  if (!url.startsWith("https:") && !isLoopback(new URL(url).hostname)) {
    throw new UsageError(`${url} is not https: everyone on the way could read your secret`);
  }
  const logins = loginsOf(io);
  const headers = callHeaders(options, io.env);
  const { card } = await connectWith(io, at, options, { headers });
  const made: (readonly [NewLogin, Secrets])[] = [];
  for (const scheme of schemesFor(card, options)) made.push(await enter(io, url, scheme, options));
  const credentials = made.map(([one, secrets]) => providerOf(one, async () => secrets));
  await tryOut(await connectWith(io, at, options, { headers, credentials }), credentials);
  for (const [one, secrets] of made) {
    const kept = await logins.save(one, secrets);
    const where = kept.secretsIn === "keychain" ? "the keychain" : `${logins.pathOf(kept)}, which only you may read`;
    const who = one.account === undefined ? "" : ` as ${line(one.account, longest.name)}`;
    io.stderr.write(`Logged in to ${url}${who}. The secret is in ${where}.\n`);
  }
  return 0;
}

/** The schemes to log in with: those of the first requirement of the card that this program can satisfy. */
function schemesFor(card: AgentCard, { scheme: wanted, withToken }: LoginOptions): readonly NamedScheme[] {
  const all = alternatives(card);
  const name = line(card.name, longest.name);
  if (all.length === 0) throw new CommandError(`the card of ${name} asks for no credentials`);
  if (wanted !== undefined) {
    const one = all.flat().find((each) => each.name === wanted);
    if (one !== undefined) return [one];
    throw new UsageError(`the card of ${name} asks for no scheme ${wanted}. It has ${namesOf(all)}`);
  }
  const usable = all.find((schemes) => schemes.every(({ scheme }) => usableKind(scheme, withToken) !== undefined));
  if (usable !== undefined) return usable;
  throw new CommandError(
    `this program cannot log in with any scheme of ${name}: ${namesOf(all)}. Pass --header or --token with each command`,
  );
}

function namesOf(all: readonly (readonly NamedScheme[])[]): string {
  const names = all.flat().map(({ name, scheme }) => `${line(name, longest.name)} (${line(schemeKind(scheme))})`);
  return [...new Set(names)].slice(0, 20).join(", ");
}

function usableKind(scheme: NamedScheme["scheme"], withToken = false): Login["kind"] | undefined {
  const kind = kindOf(scheme);
  if (!withToken) return kind;
  return kind === "bearer" || kind === "oauth2" ? "bearer" : undefined;
}

/** Asks for what one scheme needs. */
async function enter(
  io: Io,
  url: string,
  { name, scheme }: NamedScheme,
  options: LoginOptions,
): Promise<readonly [NewLogin, Secrets]> {
  const kind = usableKind(scheme, options.withToken);
  const base = {
    url,
    scheme: name,
    since: new Date().toISOString(),
    settings: {},
    origins: options.credentialOrigin ?? [],
  };
  const shown = line(name, longest.name);
  switch (kind) {
    case "apiKey":
    case "bearer": {
      const what = kind === "apiKey" ? "API key" : "Token";
      const secret = await answerTo(io, `${what} for ${url} (${shown}): `, true);
      // The error of fetch() would show it.
      if (!/^[\x21-\x7e]+$/.test(secret))
        throw new UsageError("what was given has characters that no header can carry");
      return [{ ...base, kind }, { secret }];
    }
    case "basic": {
      const username = options.username ?? (await answerTo(io, `User name at ${url}: `, false));
      const secret = await answerTo(io, `Password at ${url}: `, true);
      return [{ ...base, kind, account: username, settings: { username } }, { secret }];
    }
    default:
      throw new UsageError(`this program cannot log in with ${shown} (${line(schemeKind(scheme))})`);
  }
}

/** Makes a call that every agent answers, so that a wrong secret is not kept. */
async function tryOut(client: Client, credentials: readonly CredentialProvider[]): Promise<void> {
  try {
    if (client.card.capabilities.extendedAgentCard === true) await client.getExtendedAgentCard();
    else await client.listTasks({ pageSize: 1, historyLength: 0 });
  } catch (error) {
    // The error says where nothing was sent, and what to do.
    if (hasCode(error, "Unauthenticated") && error.metadata["withheldFrom"] === undefined) {
      throw new CommandError(
        `the agent does not accept ${credentials.length === 1 ? "it" : "them"}: ${error.message}`,
        {
          cause: error,
        },
      );
    }
    // The agent knows the caller, and says something else.
    if (hasCode(error, "Unauthenticated", "ConnectionFailed", "Timeout", "InvalidResponse")) throw error;
  }
}

/** `parley logout`. Returns the exit code. */
export async function logout(io: Io, at: string | undefined, { all }: { readonly all?: boolean }): Promise<number> {
  if ((at === undefined) !== (all === true)) throw new UsageError("give either the URL of an agent, or --all");
  const logins = loginsOf(io);
  const found = at === undefined ? await logins.list() : await logins.for(at);
  if (found.length === 0) {
    io.stderr.write(at === undefined ? "You are not logged in anywhere.\n" : `You are not logged in to ${at}.\n`);
    return 0;
  }
  for (const one of found) {
    await logins.remove(one);
    io.stderr.write(`Logged out of ${line(one.url)} (${line(one.scheme, longest.name)}).\n`);
  }
  return 0;
}

const kindNames: Readonly<Record<Login["kind"], string>> = {
  apiKey: "API key",
  basic: "HTTP Basic",
  bearer: "token",
  oauth2: "OAuth 2",
};

/** `parley whoami`. Returns the exit code: 1 where there is no login. */
export async function whoami(io: Io, at: string | undefined, { json }: ListLoginsOptions): Promise<number> {
  const logins = loginsOf(io);
  const found = at === undefined ? await logins.list() : await logins.for(at);
  if (json === true) {
    io.stdout.write(`${jsonLine({ logins: found })}\n`);
  } else if (found.length === 0) {
    io.stderr.write(`You are not logged in${at === undefined ? "" : ` to ${at}`}.\n`);
  } else {
    const style = styleFor(io.stdout, io.env);
    const rows = found.map(({ url, scheme, kind, account = "", secretsIn, since }) => [
      line(url),
      line(scheme, longest.name),
      kindNames[kind],
      line(account, longest.name),
      secretsIn,
      line(since),
    ]);
    const header = ["AGENT", "SCHEME", "KIND", "ACCOUNT", "SECRET IN", "SINCE"];
    io.stdout.write(table([header, ...rows], (cell, row) => (row === 0 ? style("dim", cell) : cell)));
  }
  return found.length === 0 && at !== undefined ? 1 : 0;
}
