import type { JsonObject, JsonValue } from "@parley/a2a/internal/model/index";
import { isObject } from "@parley/a2a/internal/model/schema";
import { digestOf } from "../shared/values.ts";
import { type PaymentErrorCode, type PaymentPayload, type PaymentRequirements, x402Version } from "./types.ts";

/* Compares a payment with the offers of its task (v0.2 §5.1, §10), before the facilitator is asked. */

/** The claims of a payment, as far as its scheme is known here. */
interface PaymentFacts {
  /** Unique value, so that the payment can be used only once. */
  readonly nonce: string;
  /** The payer. */
  readonly payer?: string;
  /** The payee. */
  readonly payTo?: string;
  /** The amount, in the smallest unit. */
  readonly amount?: bigint;
  /** Earliest settlement, in milliseconds since the Unix epoch. */
  readonly validAfter?: number;
  /** Latest settlement, in milliseconds since the Unix epoch. */
  readonly validBefore?: number;
}

/** Why a payment is rejected. */
export interface PaymentProblem {
  readonly code: PaymentErrorCode;
  /** A sentence for people. */
  readonly reason: string;
}

/** The options that a payment matches, or the reason why it matches none. */
export type Matched =
  | { readonly facts: PaymentFacts; readonly options: readonly PaymentRequirements[] }
  | PaymentProblem;

/**
 * Compares a payment with the offered options. Several options remain if they differ only in members that the payment
 * does not have, such as the asset. The facilitator then finds the one that was signed.
 *
 * @param offeredAt - When they were offered; like `now` in milliseconds since the Unix epoch.
 */
export async function matchPayment(
  payment: PaymentPayload,
  accepts: readonly PaymentRequirements[],
  { now, offeredAt }: { readonly now: number; readonly offeredAt: number },
): Promise<Matched> {
  if (payment.x402Version !== x402Version) return invalid("The payment has another version of x402 than was offered.");
  const onNetwork = accepts.filter(({ network }) => network === payment.network);
  if (onNetwork.length === 0) {
    return { code: "NETWORK_MISMATCH", reason: "The payment is for a network that was not offered." };
  }
  const ofScheme = onNetwork.filter(({ scheme }) => scheme === payment.scheme);
  if (ofScheme.length === 0) return invalid("The payment has a scheme that was not offered.");
  const facts = await factsOf(payment);
  if ("code" in facts) return facts;
  const options: PaymentRequirements[] = [];
  let nearest: PaymentProblem & { readonly step: number } = { ...wrongAmount, step: -1 };
  for (const option of ofScheme) {
    const problem = problemWith(option, payment, facts, now, offeredAt);
    if (problem === undefined) options.push(option);
    else if (problem.step > nearest.step) nearest = problem;
  }
  if (options.length > 0) return { facts, options };
  const { code, reason } = nearest;
  return { code, reason };
}

/** `step`: the number of comparisons that passed. */
function problemWith(
  option: PaymentRequirements,
  { accepted }: PaymentPayload,
  facts: PaymentFacts,
  now: number,
  offeredAt: number,
): (PaymentProblem & { readonly step: number }) | undefined {
  const checks: readonly (PaymentProblem | false)[] = [
    facts.payTo !== undefined && !isSame(facts.payTo, option.payTo) && invalid("The payment is for another payee."),
    accepted !== undefined && differs(accepted, option),
    facts.amount !== undefined && facts.amount !== BigInt(option.maxAmountRequired) && wrongAmount,
    isOver(option, offeredAt, now) && expired("The offer has expired."),
    facts.validBefore !== undefined && facts.validBefore <= now && expired("The payment has expired."),
    facts.validAfter !== undefined && facts.validAfter > now && invalid("The payment is not valid yet."),
  ];
  for (const [step, problem] of checks.entries()) if (problem !== false) return { ...problem, step };
  return undefined;
}

/** Whether an offer has expired. */
export function isOver({ maxTimeoutSeconds }: PaymentRequirements, offeredAt: number, now: number): boolean {
  return maxTimeoutSeconds !== undefined && now > offeredAt + maxTimeoutSeconds * 1000;
}

/** The difference between the option that the wallet repeats and the offer. */
function differs(accepted: PaymentRequirements, option: PaymentRequirements): PaymentProblem | false {
  for (const name of ["scheme", "network", "asset", "payTo", "resource", "maxTimeoutSeconds"] as const) {
    const given = accepted[name];
    // A wallet may omit it.
    if (given === undefined && name === "maxTimeoutSeconds") continue;
    if (!isSame(String(given ?? ""), String(option[name] ?? ""))) {
      return invalid(`The payment accepts another ${name} than was offered.`);
    }
  }
  return BigInt(accepted.maxAmountRequired) !== BigInt(option.maxAmountRequired) && wrongAmount;
}

/** Compares names. Hexadecimal addresses are case-insensitive. */
export function isSame(one: string, other: string): boolean {
  if (one === other) return true;
  return /^0x/i.test(one) && /^0x/i.test(other) && one.toLowerCase() === other.toLowerCase();
}

const wrongAmount: PaymentProblem = {
  code: "INVALID_AMOUNT",
  reason: "The payment does not have the amount that was asked for.",
};

function invalid(reason: string): PaymentProblem {
  return { code: "INVALID_SIGNATURE", reason };
}

function expired(reason: string): PaymentProblem {
  return { code: "EXPIRED_PAYMENT", reason };
}

/** The claims of a payment: all claims of an EIP-3009 authorization; for any other form, only the unique part. */
async function factsOf({ payload }: PaymentPayload): Promise<PaymentFacts | PaymentProblem> {
  const { authorization } = payload;
  if (authorization === undefined) return { nonce: await digestOf(signedPart(payload)) };
  if (!isObject(authorization)) return invalid("The payment has no authorization.");
  const read = (...names: readonly string[]): string | undefined => {
    const value = names.map((name) => authorization[name]).find((each) => each !== undefined);
    return typeof value === "string" || typeof value === "number" ? String(value) : undefined;
  };
  const [payer, payTo, nonce] = [read("from"), read("to"), nonceText(authorization["nonce"])].map(shortName);
  const amount = whole(read("value"));
  // Times are in seconds. Names with an underscore come from an older Python library.
  const validAfter = whole(read("validAfter", "valid_after") ?? "0");
  const validBefore = whole(read("validBefore", "valid_before"));
  const hasNames = payer !== undefined && payTo !== undefined && nonce !== undefined;
  if (!hasNames || amount === undefined || validAfter === undefined || validBefore === undefined) {
    return invalid("The authorization of the payment is not complete.");
  }
  return {
    nonce: plainNonce(nonce),
    payer,
    payTo,
    amount,
    validAfter: Number(validAfter) * 1000,
    validBefore: Number(validBefore) * 1000,
  };
}

function shortName(name: string | undefined): string | undefined {
  return name === "" || (name?.length ?? 0) > 256 ? undefined : name;
}

function whole(text: string | undefined): bigint | undefined {
  return text !== undefined && /^\d{1,78}$/.test(text) ? BigInt(text) : undefined;
}

/** A nonce that is a JSON number is read as that number, not as hexadecimal digits. */
function nonceText(nonce: JsonValue | undefined): string | undefined {
  if (typeof nonce === "number") return Number.isSafeInteger(nonce) && nonce >= 0 ? nonce.toString(16) : undefined;
  return typeof nonce === "string" ? nonce : undefined;
}

/** Normalizes a nonce: facilitators read it with and without its prefix. */
function plainNonce(nonce: string): string {
  const digits = nonce.replaceAll(/\s/g, "").replace(/^0x/i, "");
  return /^[\da-f]+$/i.test(digits) ? BigInt(`0x${digits}`).toString(16) : nonce;
}

/** The unique part of a payment of an unknown form. Excludes unsigned members: changing them would make it look like a different payment. */
function signedPart(payload: JsonObject): JsonValue {
  return signedParts(payload)[0] ?? payload;
}

/** The transaction and the signature of a payment, each normalized. */
function signedParts({ transaction, signature }: JsonObject): readonly string[] {
  const parts: string[] = [];
  if (typeof transaction === "string") parts.push(plainTransaction(transaction));
  if (typeof signature === "string") parts.push(/^0x/i.test(signature) ? signature.toLowerCase() : signature);
  return parts;
}

/** Normalizes a transaction: base64 decoders skip invalid characters and ignore unused bits. */
function plainTransaction(text: string): string {
  const hex = text.replaceAll(/\s/g, "");
  if (/^(?:0x)?[\da-f]+$/i.test(hex)) return hex.toLowerCase().replace(/^0x/, "");
  const digits = text
    .replaceAll("-", "+")
    .replaceAll("_", "/")
    .replaceAll(/[^A-Za-z0-9+/]/g, "");
  const spare = [0, 0, 4, 2][digits.length % 4] ?? 0;
  const last = base64Digits.indexOf(digits.slice(-1));
  return spare === 0 ? digits : digits.slice(0, -1) + base64Digits.charAt((last >> spare) << spare);
}

const base64Digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/**
 * The nonce names of a payment, which an agent claims once for all its tasks. A facilitator reads the form of its
 * scheme and ignores other members, so a payment with several forms has a name for each. A name is a digest, because
 * its length is limited.
 */
export async function nonceNames(
  { scheme, network, payload }: PaymentPayload,
  { payer = "", nonce }: PaymentFacts,
): Promise<readonly string[]> {
  const { authorization, signature: _, ...others } = payload;
  // A payload with only an authorization is unique by its nonce. If it has other members, a facilitator may ignore `authorization`.
  const isPlain = authorization !== undefined && Object.keys(others).length === 0;
  const digests = await Promise.all((isPlain ? [] : signedParts(payload)).map(digestOf));
  const names = [
    [plainAddress(payer), nonce],
    ...digests.filter((digest) => digest !== nonce).map((each) => ["", each]),
  ];
  return Promise.all(names.map((name) => digestOf([scheme, network, ...name])));
}

/** Normalizes an address: hexadecimal ones are case-insensitive, and the prefix is optional. */
function plainAddress(address: string): string {
  const digits = address.replaceAll(/\s/g, "").toLowerCase();
  return /^[\da-f]{40}$/.test(digits) ? `0x${digits}` : digits;
}
