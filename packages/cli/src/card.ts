import { writeFile } from "node:fs/promises";
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
import { defined } from "@parley/a2a/internal/base/defined";
import { jsonLine, line } from "@parley/a2a/internal/base/display";
import type { FetchLike } from "@parley/a2a/internal/client/index";
import { toA2AError } from "@parley/a2a/internal/model/index";
import { open, type CallOptions } from "./connection.ts";
import { CommandError, UsageError } from "./errors.ts";
import { fileReason, jsonOf, readAll, readBytes } from "./files.ts";
import type { Io } from "./io.ts";
import { showCard } from "./output/show.ts";
import { maxLength, print, type Style } from "./output/text.ts";

/** `parley card show`. */
export async function show(io: Io, at: string, options: CallOptions): Promise<number> {
  const client = await open(io, at, options);
  print(io, options, client.card, (style) => showCard(client.card, style));
  return 0;
}

interface VerifyOptions extends CallOptions {
  readonly keys: readonly string[];
}

interface SignOptions {
  readonly key: readonly string[];
  readonly jku?: string;
  readonly reduced?: boolean;
}

interface KeyOptions {
  readonly algorithm: CardAlgorithm;
}

/** `parley card verify`. Returns the exit code. */
export async function verify(io: Io, at: string, options: VerifyOptions): Promise<number> {
  const keys: TrustedKeys[] = [];
  for (const place of options.keys) keys.push({ keySet: await keySetAt(place, io.cwd) });
  const { card, address } = await readCard(io, at, options);
  const { nodeDialer } = await import("@parley/node");
  const verdict = await verifyCard(card, { keys, dialer: nodeDialer() }, defined({ address }));
  print(io, options, verdict, (style) => showVerdict(verdict, style));
  return verdict.trusted ? 0 : 1;
}

function showVerdict({ trusted, signatures }: CardVerdict, style: Style): string {
  const rows = signatures.map((signature, i) => `  ${i + 1}  ${showSignature(signature, style)}\n`);
  const end = trusted
    ? style("green", "✓ A trusted key signed this card.")
    : style("red", `✗ ${signatures.length === 0 ? "The card has no signature." : "No trusted key signed this card."}`);
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
  print(io, options, { findings }, (style) =>
    findings.length === 0 ? "No problems found.\n" : findings.map((finding) => showFinding(finding, style)).join(""),
  );
  return findings.some(({ level }) => level === "error") ? 1 : 0;
}

function showFinding({ level, field, message }: CardFinding, style: Style): string {
  const where = field === "" ? "" : `${line(field, maxLength.name)}: `;
  return `${style(level === "error" ? "red" : "yellow", level)}  ${where}${line(message)}\n`;
}

/** `parley card sign`. Returns the exit code. */
export async function sign(io: Io, file: string, { key, jku, reduced }: SignOptions): Promise<number> {
  const { card } = await readCard(io, file, {});
  const signed = await signCard(card, await privateKeys(key, io.cwd), defined({ jku, reduced }));
  io.stdout.write(`${jsonLine(signed)}\n`);
  return 0;
}

export async function privateKeys(files: readonly string[], cwd: string): Promise<readonly PrivateCardKey[]> {
  const keys: PrivateCardKey[] = [];
  for (const file of files) keys.push((await jsonOf(file, cwd)) as PrivateCardKey);
  return keys;
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
  io.stderr.write(`Wrote the private key to ${file}. Keep it secret, and publish the key set.\n`);
  return 0;
}

/** A key set: a URL, or a file with a key set or a single key. */
async function keySetAt(place: string, cwd: string): Promise<TrustedKeys["keySet"]> {
  if (/^https?:\/\//i.test(place)) {
    if (URL.canParse(place)) return place;
    throw new UsageError(`--keys <place> must be a valid URL; got ${JSON.stringify(place)}`);
  }
  const value = await jsonOf(place, cwd);
  if ("keys" in value && Array.isArray(value.keys)) return value as Exclude<TrustedKeys["keySet"], string>;
  if ("kty" in value && typeof value.kty === "string") return { keys: [{ ...value, kty: value.kty }] };
  throw new UsageError(`${place} must contain a key set: {"keys":[…]}`);
}

/** A card exactly as it was received or read. */
export interface CardDocument {
  readonly card: object;
  /** URL of the card; absent for a file. */
  readonly address?: string;
}

/** The same limit as for clients. */
const maxCardBytes = 1 << 20;

/** Reads the card of an agent, of a file, or of standard input for `-`. */
export async function readCard(io: Io, at: string, options: CallOptions): Promise<CardDocument> {
  if (/^https?:\/\//i.test(at)) {
    if (!URL.canParse(at)) throw new UsageError(`<card> must be a valid URL; got ${JSON.stringify(at)}`);
    return fetchCard(io, at, options);
  }
  const text = at === "-" ? await readAll(io.stdin) : (await readBytes(at, io.cwd)).toString("utf8");
  return { card: parse(text, at) };
}

/** Finds the card as a client does, and returns it as the server sent it. */
async function fetchCard(io: Io, at: string, options: CallOptions): Promise<CardDocument> {
  let found: { readonly text: string; readonly url: string } | undefined;
  const recording: FetchLike = async (url, init) => {
    const response = await fetch(url, init);
    const body = await limited(response);
    if (response.status === 200 && body !== undefined) found = { text: new TextDecoder().decode(body), url };
    return body === undefined ? response : new Response(body, { status: response.status, headers: response.headers });
  };
  try {
    await open(io, at, options, { fetch: recording, retry: false });
  } catch (error) {
    // Returns cards that a client rejects, too. But after a 404, a card at the root of the host may belong to another agent.
    if (found === undefined || (error instanceof Error && isMissing(error))) throw error;
  }
  if (found === undefined) throw new UsageError(`${at} has no card`);
  return { card: parse(found.text, found.url), address: found.url };
}

function isMissing(error: Error): boolean {
  return toA2AError(error).metadata["httpStatus"] === "404";
}

/** The body of a response, up to the maximum size of a card; `undefined` for a response without a body. */
export async function limited(response: Response): Promise<Uint8Array<ArrayBuffer> | undefined> {
  if (response.body === null || response.status === 204 || response.status === 304) return undefined;
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response.body as AsyncIterable<Uint8Array>) {
    size += chunk.byteLength;
    if (size > maxCardBytes) throw new UsageError(`the card at ${response.url} exceeds ${maxCardBytes} bytes`);
    chunks.push(chunk);
  }
  return Uint8Array.from(Buffer.concat(chunks));
}

function parse(text: string, at: string): object {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return value;
  } catch {
    // Reported below.
  }
  throw new UsageError(`${at} is not an agent card: it must be a JSON object`);
}
