import { createHash } from "node:crypto";
import type { Principal } from "@parley/a2a";
import { anyOf, apiKey, bearer, openIdConnect, type Authenticator } from "@parley/a2a/auth";
import { UsageError } from "./errors.ts";
import type { Io } from "./io.ts";

/** Options of `parley serve` that say who may call. */
export interface CallerOptions {
  readonly token?: readonly string[];
  readonly apiKey?: readonly string[];
  readonly issuer?: string;
  readonly audience?: readonly string[];
  readonly scope?: readonly string[];
}

/**
 * Parses `SECRET` or `SECRET=SUBJECT`; the secret itself may end in `=` (RFC 6750 §2.1), and may be a hash as `parley key` makes it.
 * Without a subject the caller is identified by a hash of what was given.
 */
export function parseToken(text: string): readonly [token: string, subject: string] {
  const [, token, subject] = /^(sha256:[\w+/]{43}=|[\w\-.~+/]+=*)(?:=([^=]+))?$/.exec(text) ?? [];
  if (token === undefined) {
    throw new UsageError(
      "a token or a key is SECRET or SECRET=SUBJECT. The secret has letters, digits and -._~+/, or it is a hash of parley key",
    );
  }
  return [token, subject ?? `token-${createHash("sha256").update(token).digest("hex").slice(0, 12)}`];
}

/** The callers of options and of a variable of the environment, by their secrets. */
function callersOf(given: readonly string[] = [], listed = ""): Readonly<Record<string, Principal>> {
  const texts = [...listed.split(",").map((text) => text.trim()), ...given].filter((text) => text !== "");
  return Object.fromEntries(texts.map(parseToken).map(([secret, subject]) => [secret, { subject }]));
}

/** How callers authenticate; `undefined` where everyone may call. */
export function authenticatorOf(options: CallerOptions, env: Io["env"]): Authenticator | undefined {
  const tokens = callersOf(options.token, env["PARLEY_TOKENS"]);
  const keys = callersOf(options.apiKey, env["PARLEY_API_KEYS"]);
  const { issuer, audience, scope } = options;
  if (issuer === undefined && (audience !== undefined || scope !== undefined)) {
    throw new UsageError("--audience and --scope are for the tokens of an --issuer");
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
