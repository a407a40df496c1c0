import { readFile, writeFile } from "node:fs/promises";
import { resolve } from "node:path";
import {
  cardKeySet,
  lintCard,
  makeCardKey,
  signCard,
  verifyCard,
  type CardAlgorithm,
  type CardFinding,
  type CardVerdict,
  type PrivateCardKey,
  type SignatureVerdict,
  type TrustedKeys,
} from "@parley/a2a/cards";
import { jsonLine, line } from "@parley/a2a/internal/base/display";
import { nodeDialer } from "@parley/node";
import { readCard } from "./card-document.ts";
import type { CallOptions } from "./connection.ts";
import { CommandError, UsageError } from "./errors.ts";
import { fileReason } from "./files.ts";
import type { Io } from "./io.ts";
import { longest, styleFor, type Style } from "./output/text.ts";

export interface VerifyOptions extends CallOptions {
  readonly keys: readonly string[];
}

export interface SignOptions {
  readonly key: readonly string[];
  readonly jku?: string;
  readonly reduced?: boolean;
}

export interface KeyOptions {
  readonly algorithm: CardAlgorithm;
}

/** `parley card verify`. Returns the exit code. */
export async function verify(io: Io, at: string, options: VerifyOptions): Promise<number> {
  const keys: TrustedKeys[] = [];
  for (const place of options.keys) keys.push({ keySet: await keySetAt(place, io.cwd) });
  const { card, address } = await readCard(io, at, options);
  const verdict = await verifyCard(card, { keys, dialer: nodeDialer() }, address === undefined ? {} : { address });
  io.stdout.write(options.json === true ? `${jsonLine(verdict)}\n` : showVerdict(verdict, styleFor(io.stdout, io.env)));
  return verdict.trusted ? 0 : 1;
}

function showVerdict({ trusted, signatures }: CardVerdict, style: Style): string {
  const rows = signatures.map((signature, i) => `  ${i + 1}  ${showSignature(signature, style)}\n`);
  const end = trusted
    ? style("green", "✓ A key that you trust has signed this card.")
    : style(
        "red",
        `✗ ${signatures.length === 0 ? "The card has no signature." : "No key that you trust has signed this card."}`,
      );
  return `${rows.join("")}${end}\n`;
}

function showSignature({ outcome, kid, alg, reading, reason }: SignatureVerdict, style: Style): string {
  const about = [
    kid === undefined ? undefined : `key ${kid}`,
    alg,
    reading === undefined ? undefined : `over the ${reading} form`,
    reason,
  ];
  return `${style(outcome === "valid" ? "green" : "red", outcome)}  ${line(about.filter((word) => word !== undefined).join(", "))}`;
}

/** `parley card lint`. Returns the exit code. */
export async function lint(io: Io, at: string, options: CallOptions): Promise<number> {
  const { card } = await readCard(io, at, options);
  const findings = lintCard(card);
  const style = styleFor(io.stdout, io.env);
  if (options.json === true) io.stdout.write(`${jsonLine({ findings })}\n`);
  else if (findings.length === 0) io.stdout.write("Nothing was found.\n");
  else io.stdout.write(findings.map((finding) => showFinding(finding, style)).join(""));
  return findings.some(({ level }) => level === "error") ? 1 : 0;
}

function showFinding({ level, field, message }: CardFinding, style: Style): string {
  const where = field === "" ? "" : `${line(field, longest.name)}: `;
  return `${style(level === "error" ? "red" : "yellow", level)}  ${where}${line(message)}\n`;
}

/** `parley card sign`. Returns the exit code. */
export async function sign(io: Io, file: string, { key, jku, reduced }: SignOptions): Promise<number> {
  const keys: PrivateCardKey[] = [];
  for (const path of key) keys.push((await jsonOf(path, io.cwd)) as PrivateCardKey);
  const { card } = await readCard(io, file, {});
  const signed = await signCard(card, keys, {
    ...(jku !== undefined && { jku }),
    ...(reduced !== undefined && { reduced }),
  });
  io.stdout.write(`${jsonLine(signed)}\n`);
  return 0;
}

/** `parley card key`. Returns the exit code. */
export async function makeKey(io: Io, file: string, { algorithm }: KeyOptions): Promise<number> {
  const key = await makeCardKey(algorithm);
  try {
    await writeFile(resolve(io.cwd, file), `${JSON.stringify(key, null, 2)}\n`, { flag: "wx", mode: 0o600 });
  } catch (error) {
    throw new CommandError(`cannot write ${file}: ${fileReason(error)}`, { cause: error });
  }
  io.stdout.write(`${jsonLine(await cardKeySet([key]))}\n`);
  io.stderr.write(`The private key is in ${file}. Keep it secret, and publish the key set.\n`);
  return 0;
}

/** A key set from a file, which may also hold one key; or the URL of one. */
async function keySetAt(place: string, cwd: string): Promise<TrustedKeys["keySet"]> {
  if (/^https?:\/\//i.test(place)) {
    if (URL.canParse(place)) return place;
    throw new UsageError(`--keys <place> cannot be ${JSON.stringify(place)}: it is not a URL`);
  }
  const value = await jsonOf(place, cwd);
  if ("keys" in value && Array.isArray(value.keys)) return value as Exclude<TrustedKeys["keySet"], string>;
  if ("kty" in value && typeof value.kty === "string") return { keys: [{ ...value, kty: value.kty }] };
  throw new UsageError(`${place} has no key set: {"keys":[…]}`);
}

/** A file that holds an object as JSON. */
export async function jsonOf(file: string, cwd: string): Promise<object> {
  let text: string;
  try {
    text = await readFile(resolve(cwd, file), "utf8");
  } catch (error) {
    throw new UsageError(`cannot read ${file}: ${fileReason(error)}`, { cause: error });
  }
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null) return value;
  } catch {
    // The error of JSON.parse() shows what is in the file, which may be a key.
  }
  throw new UsageError(`${file} is not JSON`);
}
