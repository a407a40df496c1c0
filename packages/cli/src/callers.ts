import { createHash, randomBytes } from "node:crypto";
import type { Principal } from "@parley/a2a/internal/protocol/index";
import { anyOf, apiKey, bearer, hashKey, hashPassword, openIdConnect, type Authenticator } from "@parley/a2a/auth";
import { UsageError } from "./errors.ts";
import { answerTo } from "./files.ts";
import type { Io } from "./io.ts";
import { print } from "./output/text.ts";

/** Options of `parley serve` for the authentication of callers. */
export interface CallerOptions {
  readonly token?: readonly string[];
  readonly apiKey?: readonly string[];
  readonly issuer?: string;
  readonly audience?: readonly string[];
  readonly scope?: readonly string[];
}

/**
 * Parses `TOKEN` or `TOKEN=SUBJECT`, also for API keys. The token may end in `=` (RFC 6750 §2.1), or be a hash from `parley key`. The
 * default subject is derived from the token. `name`: the name of the option, for errors.
 */
export function parseToken(text: string, name = "a token"): readonly [token: string, subject: string] {
  const [, token, subject] = /^(sha256:[\w+/]{43}=|[\w\-.~+/]+=*)(?:=([^=]+))?$/.exec(text) ?? [];
  if (token === undefined) {
    throw new UsageError(
      `${name} must be TOKEN or TOKEN=SUBJECT. TOKEN consists of letters, digits and -._~+/, or is a hash from parley key`,
    );
  }
  return [token, subject ?? `token-${createHash("sha256").update(token).digest("hex").slice(0, 12)}`];
}

/** The callers from an option and an environment variable, keyed by their secrets. */
function callersOf(
  [option, given = []]: readonly [name: string, given: readonly string[] | undefined],
  [variable, listed = ""]: readonly [name: string, listed: string | undefined],
): Readonly<Record<string, Principal>> {
  const texts = [
    ...listed.split(",").map((text) => [text.trim(), variable] as const),
    ...given.map((text) => [text, option] as const),
  ].filter(([text]) => text !== "");
  return Object.fromEntries(
    texts.map(([text, name]) => parseToken(text, name)).map(([secret, subject]) => [secret, { subject }]),
  );
}

/** The authenticator of the options; `undefined` if everyone may call. */
export function authenticatorOf(options: CallerOptions, env: Io["env"]): Authenticator | undefined {
  const tokens = callersOf(["--token <token>", options.token], ["PARLEY_TOKENS", env["PARLEY_TOKENS"]]);
  const keys = callersOf(["--api-key <key>", options.apiKey], ["PARLEY_API_KEYS", env["PARLEY_API_KEYS"]]);
  const { issuer, audience, scope } = options;
  if (issuer === undefined && (audience !== undefined || scope !== undefined)) {
    throw new UsageError("--audience <name> and --scope <scope> require --issuer <url>");
  }
  const schemes = [
    ...(Object.keys(tokens).length > 0 ? [bearer(tokens)] : []),
    ...(Object.keys(keys).length > 0 ? [apiKey(keys)] : []),
    ...(issuer === undefined
      ? []
      : [openIdConnect({ issuer, ...(audience && { audience }), ...(scope && { scopes: scope }) })]),
  ];
  return schemes.length > 1 ? anyOf(...schemes) : schemes[0];
}

interface KeyOptions {
  readonly hash?: boolean;
  readonly password?: boolean;
  readonly json?: boolean;
}

/** `parley key`. */
export async function key(io: Io, options: KeyOptions): Promise<number> {
  const { hash, password } = options;
  if (hash === true && password === true) throw new UsageError("pass either --hash or --password");
  let made: Readonly<Record<string, string>>;
  if (password === true) made = { hash: await hashPassword(await answerTo(io, "Password: ", true)) };
  else if (hash === true) made = { hash: await hashKey(await answerTo(io, "Key: ", true)) };
  else {
    const fresh = randomBytes(32).toString("base64url");
    made = { key: fresh, hash: await hashKey(fresh) };
  }
  const text = Object.entries(made).map(([name, value]) => (made["key"] === undefined ? value : `${name}  ${value}`));
  print(io, options, made, text.join("\n"));
  return 0;
}
