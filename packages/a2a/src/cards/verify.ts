import { systemClock, type Clock } from "../base/index.ts";
import { A2AError } from "../model/index.ts";
import { isObject } from "../model/schema.ts";
import { verifiableForms, versionsOf, type CardForm } from "./canonical.ts";
import { acceptedAlgorithms, bareKey, fitsAlgorithm, outdated } from "../jws/keys.ts";
import { KeySources, type FoundKey } from "./key-sources.ts";
import type { CardTrust, CardVerdict, PublicCardKey, SignatureVerdict } from "./port.ts";
import { readHeader } from "./header.ts";

/** What a verification needs beside the card and the trust. */
export interface VerifyCardOptions {
  /** Where the card was asked for, for `TrustedKeys.origins`. Absent: the origins of its interfaces have to be trusted. */
  readonly address?: string;
  /** Time. Default: that of the runtime. */
  readonly clock?: Clock;
}

/** Verifies cards, and keeps the key sets that it has read. */
type CardVerifier = (card: object, address?: string) => Promise<CardVerdict>;

/** Most signatures of a card that are looked at. */
const mostSignatures = 16;

/**
 * Verifies the signatures of one card (A2A 1.0 §8.4.3). It never throws because of what the card says.
 *
 * @param card - The card as it came, parsed from JSON: also members that are not known here may be signed.
 * @throws A2AError `InvalidParams` where `trust` is not valid.
 *
 * @example
 * ```ts
 * const keySet = "https://agents.example.com/.well-known/card-keys.json";
 * const { trusted } = await verifyCard(client.card, { keys: [{ keySet }] });
 * ```
 */
export async function verifyCard(
  card: object,
  trust: CardTrust,
  options: VerifyCardOptions = {},
): Promise<CardVerdict> {
  return cardVerifier(trust, options.clock)(card, options.address);
}

/**
 * Makes a function that verifies cards. Key sets are read when they are first needed, again after ten minutes, and when a signature
 * names a key that is not in them.
 *
 * @throws A2AError `InvalidParams` where `trust` is not valid.
 */
export function cardVerifier(trust: CardTrust, clock: Clock = systemClock): CardVerifier {
  const sources = new KeySources(trust, clock);
  return async (card, address) => {
    const given = (card as { readonly signatures?: unknown }).signatures;
    const signatures = Array.isArray(given) ? given.slice(0, mostSignatures) : [];
    if (signatures.length === 0) return { trusted: false, signatures: [] };
    let forms: readonly CardForm[];
    try {
      forms = verifiableForms(card as Readonly<Record<string, unknown>>);
    } catch (thrown) {
      const reason = thrown instanceof A2AError ? thrown.message : "The card cannot be read";
      return { trusted: false, signatures: signatures.map(() => ({ outcome: "unsupported", reason })) };
    }
    const origins = originsOf(card, address);
    const verdicts: SignatureVerdict[] = [];
    const covered = new Set<CardForm["version"]>();
    for (const signature of signatures) {
      const { form, ...verdict } = await verdictOf(signature, forms, origins, sources, clock);
      verdicts.push(verdict);
      for (const version of form === undefined ? [] : versionsIn(form, card)) covered.add(version);
    }
    // A document of both versions may have been one of a single version, before somebody added the interfaces of the other one.
    const whole = versionsOf(card as Readonly<Record<string, unknown>>).every((version) => covered.has(version));
    const trusted = whole && verdicts.some(({ outcome }) => outcome === "valid");
    return { trusted, signatures: whole ? verdicts : verdicts.map(halved) };
  };
}

/** The versions of a card whose members are in a form. As it came, a card has them all. */
function versionsIn({ reading, version }: CardForm, card: object): readonly CardForm["version"][] {
  return reading === "exact" ? versionsOf(card as Readonly<Record<string, unknown>>) : [version];
}

/** The verdict on a signature of a card of which no signature covers all versions. */
function halved(verdict: SignatureVerdict): SignatureVerdict {
  if (verdict.outcome !== "valid") return verdict;
  const { reading: _, ...rest } = verdict;
  return { ...rest, outcome: "unsupported", reason: "the card is also one of a version that is not signed" };
}

/** A verdict, with the form that a valid signature is over. */
type FormVerdict = SignatureVerdict & { readonly form?: CardForm };

/** The origins that a card belongs to: that of its address, or else those of all its interfaces. */
function originsOf(card: object, address: string | undefined): readonly string[] {
  if (address !== undefined) return [originOf(address)];
  const { supportedInterfaces, additionalInterfaces, url } = card as Readonly<Record<string, unknown>>;
  const interfaces = [supportedInterfaces, additionalInterfaces].flatMap((list): readonly unknown[] =>
    Array.isArray(list) ? list : [],
  );
  const urls = [...interfaces.map((one) => (isObject(one) ? one["url"] : undefined)), url];
  return [...new Set(urls.filter((one) => one !== undefined).map(originOf))];
}

/** An address of gRPC is `host:port`, over TLS. What has no origin is of none that somebody could trust. */
function originOf(address: unknown): string {
  if (typeof address !== "string") return "";
  if (URL.canParse(address) && /^https?:/i.test(address)) return new URL(address).origin;
  const url = `https://${address}`;
  return /^[^/?#@]+$/.test(address) && URL.canParse(url) ? new URL(url).origin : "";
}

/** What is wrong with a signature that holds for a card without its empty values as well. */
const partial = "it does not cover what is empty, such as a security requirement without scopes";

async function verdictOf(
  value: unknown,
  forms: readonly CardForm[],
  origins: readonly string[],
  sources: KeySources,
  clock: Clock,
): Promise<FormVerdict> {
  const { protected: head, signature } = isObject(value) ? value : {};
  const header = readHeader(head);
  if (header === undefined || typeof signature !== "string" || !/^[\w-]+$/.test(signature)) {
    return { outcome: "unsupported", reason: "the signature cannot be read" };
  }
  const { alg, kid, jku } = header;
  const told = { alg, ...(kid !== undefined && { kid }), ...(jku !== undefined && { jku }) };
  if (!acceptedAlgorithms.includes(alg))
    return { outcome: "unsupported", ...told, reason: "its algorithm is not accepted" };
  if (header.reduced) return { outcome: "unsupported", ...told, reason: partial };
  const jws = { protected: head as string, signature };
  let known: FormVerdict | undefined;
  try {
    for await (const found of sources.keys(header, origins)) {
      const verdict = await tried(jws, found, forms, alg, clock);
      if (verdict.outcome === "valid") return { ...verdict, ...told };
      // What is known about a key says more than that another one does not fit.
      if (known === undefined || verdict.outcome === "outdated-key") known = verdict;
    }
  } catch (thrown) {
    if (!(thrown instanceof A2AError)) throw thrown;
    return { outcome: "unreadable-keys", ...told, reason: thrown.message };
  }
  return { ...(known ?? { outcome: "unknown-key", reason: "its key is not trusted for this card" }), ...told };
}

async function tried(
  jws: { readonly protected: string; readonly signature: string },
  { key, named }: FoundKey,
  forms: readonly CardForm[],
  alg: string,
  clock: Clock,
): Promise<FormVerdict> {
  const late = outdated(key, clock.now());
  if (late !== undefined) return { outcome: "outdated-key", reason: late };
  const form = await formOf(jws, key, forms, alg);
  if (form?.lacking === true) return { outcome: "unsupported", reason: partial };
  if (form !== undefined) return { outcome: "valid", reading: form.reading, form };
  return named
    ? { outcome: "invalid", reason: "the card is not what this key has signed" }
    : { outcome: "unknown-key", reason: "its key is not trusted for this card" };
}

/** The first form that a signature is over; `undefined` where it is over none, or where the key does not fit. */
async function formOf(
  jws: { readonly protected: string; readonly signature: string },
  key: PublicCardKey,
  forms: readonly CardForm[],
  alg: string,
): Promise<CardForm | undefined> {
  const { base64url, flattenedVerify, importJWK } = await import("jose");
  const bare = bareKey(key);
  if (bare === undefined || !fitsAlgorithm(key, alg)) return undefined;
  try {
    const imported = await importJWK(bare, alg);
    for (const form of forms) {
      const payload = base64url.encode(form.text);
      const verified = await flattenedVerify({ ...jws, payload }, imported, { algorithms: [alg] }).catch(
        () => undefined,
      );
      if (verified !== undefined) return form;
    }
  } catch {
    // A key that cannot be imported proves nothing.
  }
  return undefined;
}
