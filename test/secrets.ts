import { inspect } from "node:util";

/*
 * Secrets in tests, and the log lines of a test run. A secret is marked (`secret-of-…-0123456789`), registered by a test, or a signed
 * token. test/quiet-about-secrets.ts searches the logs and audits of each test file for them.
 */

interface Collected {
  readonly lines: string[];
  readonly secrets: Set<string>;
}

const place = Symbol.for("parley.tests.secrets");

/** One object per process, because test files and the process's setup may load this module separately. */
function collected(): Collected {
  const holder = globalThis as { [place]?: Collected };
  return (holder[place] ??= { lines: [], secrets: new Set() });
}

/** Registers a secret that is created at run time, such as a token. Returns it. */
export function keepSecret<T extends string | undefined>(secret: T): T {
  if (secret !== undefined && secret.length >= 8) collected().secrets.add(secret);
  return secret;
}

/** Keeps log output for the search. */
export function collect(...logged: readonly unknown[]): void {
  const shown = logged.map((each) =>
    typeof each === "string" ? each : inspect(each, { depth: 8, maxStringLength: Infinity, maxArrayLength: Infinity }),
  );
  collected().lines.push(shown.join(" "));
}

/** Returns the output since the last call. */
export function taken(): readonly string[] {
  return collected().lines.splice(0);
}

/** The start of a marked secret in base64, at each offset: only the characters that do not depend on the surrounding text. */
const encoded = ["", "x", "xx"].map((before) => btoa(`${before}secret-of-`).slice(before === "" ? 0 : 4, -4));

const patterns: readonly RegExp[] = [
  /secret-of-[\w-]*0123456789/,
  ...encoded.map((part) => new RegExp(part)),
  // A signed token (RFC 7519), which any reader could use.
  /eyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]{16,}/,
];

/** The secrets in a text, in plain form, percent-encoded or in base64. */
export function secretsIn(text: string): readonly string[] {
  const found = patterns.flatMap((pattern) => pattern.exec(text)?.[0] ?? []);
  const known = [...collected().secrets].filter((secret) =>
    [secret, encodeURIComponent(secret), btoa(secret)].some((form) => text.includes(form)),
  );
  return [...found, ...known];
}
