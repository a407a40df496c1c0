import { inspect } from "node:util";

/*
 * Secrets of tests, and the log lines of a test run. A secret is one that is marked, `secret-of-…-0123456789`, one that a test has
 * registered, or a token that is signed. test/quiet-about-secrets.ts searches what the loggers and audits of each test file wrote.
 */

interface Collected {
  readonly lines: string[];
  readonly secrets: Set<string>;
}

const place = Symbol.for("parley.tests.secrets");

/** Of this process. Test files and the setup of their process may have modules of their own. */
function collected(): Collected {
  const holder = globalThis as { [place]?: Collected };
  return (holder[place] ??= { lines: [], secrets: new Set() });
}

/** Registers a secret that was made at run time, such as a token. Returns it. */
export function keepSecret<T extends string | undefined>(secret: T): T {
  if (secret !== undefined && secret.length >= 8) collected().secrets.add(secret);
  return secret;
}

/** Keeps what was logged, for the search. */
export function collect(...logged: readonly unknown[]): void {
  const shown = logged.map((each) =>
    typeof each === "string" ? each : inspect(each, { depth: 8, maxStringLength: Infinity, maxArrayLength: Infinity }),
  );
  collected().lines.push(shown.join(" "));
}

/** What was collected since the last call. */
export function taken(): readonly string[] {
  return collected().lines.splice(0);
}

/** The begin of a marked secret in base64, wherever it begins: the characters that do not depend on what is around it. */
const encoded = ["", "x", "xx"].map((before) => btoa(`${before}secret-of-`).slice(before === "" ? 0 : 4, -4));

const patterns: readonly RegExp[] = [
  /secret-of-[\w-]*0123456789/,
  ...encoded.map((part) => new RegExp(part)),
  // A signed token (RFC 7519): any reader could use it.
  /eyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]{16,}/,
];

/** The secrets in a text, as they are, percent-encoded or in base64. */
export function secretsIn(text: string): readonly string[] {
  const found = patterns.flatMap((pattern) => pattern.exec(text)?.[0] ?? []);
  const known = [...collected().secrets].filter((secret) =>
    [secret, encodeURIComponent(secret), btoa(secret)].some((form) => text.includes(form)),
  );
  return [...found, ...known];
}
