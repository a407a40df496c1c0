import { isBase64Url } from "../base/bytes.ts";
import { systemClock, type Clock } from "../base/index.ts";
import { A2AError, invalidParams } from "../model/index.ts";
import { isObject } from "../model/schema.ts";
import { verifiableForms, versionsOf, strayMembers, type CardForm, type StrayMember } from "./canonical.ts";
import { acceptedAlgorithms, bareKey, fitsAlgorithm, outdated } from "../jws/keys.ts";
import { KeySources, type FoundKey } from "./key-sources.ts";
import type { CardTrust, CardVerdict, PublicCardKey, SignatureVerdict, CardCheck } from "./port.ts";
import { readHeader } from "./sign.ts";

/** Options of a verification. */
export interface VerifyCardOptions {
  /** The URL of the card, for `TrustedKeys.origins`. If absent, the origins of all interfaces of the card must be trusted. */
  readonly address?: string;
  /** The clock. Default: the clock of the runtime. */
  readonly clock?: Clock;
}

/** Verifies cards, and caches key sets. */
type CardVerifier = (card: object, address?: string) => Promise<CardVerdict>;

const maxSignatures = 16;

/**
 * Verifies the signatures of one card (A2A 1.0 §8.4.3). Never throws because of the content of a card.
 *
 * Instead of the document, use `card` of the verdict, which has only the content that the signatures cover.
 *
 * @param card - The card as received, parsed from JSON. Members that its version does not define must be signed too.
 * @throws A2AError `InvalidParams` if `trust` is not valid.
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
 * Makes a function that verifies cards. The function reads key sets on first use, again after ten minutes, and when a signature names a
 * key that is not in the key sets.
 *
 * @throws A2AError `InvalidParams` if `trust` is not valid.
 */
function cardVerifier(trust: CardTrust, clock: Clock = systemClock): CardVerifier {
  const sources = new KeySources(trust, clock);
  return async (given, address) => {
    const card = given as Json;
    const { signatures: listed } = card;
    const signatures = Array.isArray(listed) ? listed.slice(0, maxSignatures) : [];
    if (signatures.length === 0) return { trusted: false, signatures: [] };
    const read = formsOf(card);
    if (typeof read === "string") {
      return { trusted: false, signatures: signatures.map(() => ({ outcome: "unsupported", reason: read })) };
    }
    const origins = originsOf(card, address);
    const verdicts: SignatureVerdict[] = [];
    const covered = new Map<CardForm["version"], Json>();
    for (const signature of signatures) {
      const { form, ...verdict } = await verdictOf(signature, read, origins, sources, clock);
      verdicts.push(verdict);
      for (const version of form === undefined ? [] : versionsIn(form, card)) covered.set(version, form?.covered ?? {});
    }
    // An attacker may have added the interfaces of another version to a signed card of one version.
    const whole = versionsOf(card).every((version) => covered.has(version));
    if (!whole) return { trusted: false, signatures: verdicts.map(halved) };
    if (!verdicts.some(({ outcome }) => outcome === "valid")) return { trusted: false, signatures: verdicts };
    const used = [...covered.values()].reduce<unknown>(merged, {});
    return { trusted: true, card: { ...(used as Json), signatures: listed }, signatures: verdicts };
  };
}

/** The forms of a card that can be verified, or the reason why there is no such form. */
function formsOf(card: Json): Forms | string {
  try {
    const stray = strayMembers(card);
    const note = noteOn(stray);
    // If two readers can read a card differently, no signature is valid for it.
    const isAmbiguous = stray.some(({ readAs }) => readAs !== undefined);
    return { forms: isAmbiguous ? [] : verifiableForms(card), note };
  } catch (thrown) {
    return thrown instanceof A2AError ? thrown.message : "the card cannot be read";
  }
}

/** The union of two forms of the same card. */
function merged(one: unknown, other: unknown): unknown {
  if (Array.isArray(one) && Array.isArray(other)) return one.map((item, at) => merged(item, other[at]));
  if (!isObject(one) || !isObject(other)) return one;
  const both = Object.entries(other).map(
    ([name, value]) => [name, Object.hasOwn(one, name) ? merged(one[name], value) : value] as const,
  );
  return Object.fromEntries([...Object.entries(one), ...both]);
}

/** The versions of a card whose members are in a form. The card as received has the members of all its versions. */
function versionsIn({ reading, version }: CardForm, card: Json): readonly CardForm["version"][] {
  return reading === "exact" ? [...new Set([...versionsOf(card), version])] : [version];
}

/** The verdict on a signature if the signatures of the card do not cover all of its versions. */
function halved(verdict: SignatureVerdict): SignatureVerdict {
  if (verdict.outcome !== "valid") return verdict;
  const { reading: _, ...rest } = verdict;
  return { ...rest, outcome: "unsupported", reason: "the card also has a version that is not signed" };
}

type Json = Readonly<Record<string, unknown>>;

interface Forms {
  readonly forms: readonly CardForm[];
  /** A note on undefined members, for invalid signatures. */
  readonly note: string;
}

/** Names the members that the versions of a card do not define. Such members must be signed too, in the spelling of A2A. */
function noteOn(stray: readonly StrayMember[]): string {
  if (stray.length === 0) return "";
  const names = stray.slice(0, 5).map(({ field, readAs }) => {
    const name = JSON.stringify(field.slice(0, 100));
    return readAs === undefined ? name : `${name}, which some readers treat as ${readAs}`;
  });
  return `. It has members that its version does not define: ${names.join("; ")}`;
}

type FormVerdict = SignatureVerdict & { readonly form?: CardForm };

/** The origins that a card belongs to: the origin of its URL, or else the origins of all its interfaces. */
function originsOf(card: Json, address: string | undefined): readonly string[] {
  if (address !== undefined) return [originOf(address)];
  const { supportedInterfaces, additionalInterfaces, url } = card;
  const interfaces = [supportedInterfaces, additionalInterfaces].flatMap((list): readonly unknown[] =>
    Array.isArray(list) ? list : [],
  );
  const urls = [...interfaces.map((one) => (isObject(one) ? one["url"] : undefined)), url];
  return [...new Set(urls.filter((one) => one !== undefined).map(originOf))];
}

/** The origin of an address. gRPC uses `host:port`, over TLS. An address without an origin cannot be trusted. */
function originOf(address: unknown): string {
  if (typeof address !== "string") return "";
  if (URL.canParse(address) && /^https?:/i.test(address)) return new URL(address).origin;
  const url = `https://${address}`;
  return /^[^/?#@]+$/.test(address) && URL.canParse(url) ? new URL(url).origin : "";
}

/** The reason for rejecting a signature that would also be valid without the empty values. */
const partial = "it does not cover empty values, such as a security requirement without scopes";

async function verdictOf(
  value: unknown,
  forms: Forms,
  origins: readonly string[],
  sources: KeySources,
  clock: Clock,
): Promise<FormVerdict> {
  const { protected: head, signature } = isObject(value) ? value : {};
  const header = readHeader(head);
  if (header === undefined || typeof signature !== "string" || signature === "" || !isBase64Url(signature)) {
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
      // "Outdated key" is more specific than "key does not match".
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
  { forms, note }: Forms,
  alg: string,
  clock: Clock,
): Promise<FormVerdict> {
  const late = outdated(key, clock.now());
  if (late !== undefined) return { outcome: "outdated-key", reason: late };
  const form = await formOf(jws, key, forms, alg);
  if (form?.lacking === true) return { outcome: "unsupported", reason: partial };
  if (form !== undefined) return { outcome: "valid", reading: form.reading, form };
  return named
    ? { outcome: "invalid", reason: `the signature does not match the card${note}` }
    : { outcome: "unknown-key", reason: "its key is not trusted for this card" };
}

/** The first form that a signature covers; `undefined` if there is no such form, or if the key does not match. */
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
    // A key that cannot be imported proves nothing, so try the next.
  }
  return undefined;
}

/**
 * Makes the option `trust` of `connect()`. Clients can share it, including its cached key sets.
 *
 * @throws A2AError `InvalidParams` if `trust` is not valid.
 *
 * @example
 * ```ts
 * const keySet = "https://agents.example.com/.well-known/card-keys.json";
 * const trust = trustCards({ policy: "require", keys: [{ keySet, origins: ["https://agents.example.com"] }] });
 * const client = await connect("https://agents.example.com/weather", { trust });
 * ```
 */
export function trustCards(trust: CardTrust, clock?: Clock): CardCheck {
  const { policy = "require" } = trust;
  if (!["require", "prefer", "ignore"].includes(policy)) {
    throw invalidParams([{ field: "trust.policy", description: 'must be "require", "prefer" or "ignore"' }]);
  }
  const verify = cardVerifier(trust, clock);
  const check: CardCheck["check"] = async (documents, address, logger) => {
    const [first] = documents;
    if (policy === "ignore") return first;
    const verdicts: CardVerdict[] = [];
    for (const document of documents) {
      const verdict = await verify(document, address);
      if (verdict.card !== undefined) return verdict.card;
      verdicts.push(verdict);
    }
    const { name } = first as { readonly name?: unknown };
    const problem = `The card of ${JSON.stringify(name)} is not signed by a trusted key: ${reasonsOf(verdicts)}`;
    const forged = verdicts.every(isForged);
    if (forged) throw new A2AError("InvalidResponse", problem);
    // The card may become trusted once its keys can be read.
    const unread = verdicts.some(({ signatures }) => signatures.some(({ outcome }) => outcome === "unreadable-keys"));
    if (policy === "require") throw new A2AError(unread ? "Unavailable" : "InvalidResponse", problem);
    logger.warn(problem);
    return first;
  };
  return { check };
}

/** Whether a signature names a trusted key but was not made with that key. */
function isForged({ signatures }: CardVerdict): boolean {
  return signatures.some(({ outcome }) => outcome === "invalid");
}

function reasonsOf(verdicts: readonly CardVerdict[]): string {
  const signatures = verdicts.flatMap((verdict) => verdict.signatures);
  if (signatures.length === 0) return "it has no signature";
  const all = signatures.map(({ kid, reason = "" }) =>
    kid === undefined ? reason : `${JSON.stringify(kid)}: ${reason}`,
  );
  return [...new Set(all)].join("; ").slice(0, 1_000);
}
