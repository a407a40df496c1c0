import { fromBase64Url } from "../base/bytes.ts";
import { isObject } from "../model/schema.ts";

/** The members of a signature's protected header that are read here (A2A 1.0 §8.4.2). */
export interface SignatureHeader {
  readonly alg: string;
  readonly kid?: string;
  readonly jku?: string;
  readonly typ?: string;
  /** Whether the signature is over a form that lacks something of the card. */
  readonly reduced: boolean;
}

/**
 * The member that marks a signature over the reduced form, where that form lacks something of the card. A client of this package takes
 * no notice of such a signature: it would hold for a card without what is lacking.
 */
export const reducedMark = "reduced";

/** Longest protected header, in characters. */
const longest = 8192;

/** Reads a protected header. `undefined` where it is none that can be verified. */
export function readHeader(value: unknown): SignatureHeader | undefined {
  const bytes = typeof value !== "string" || value.length > longest ? undefined : fromBase64Url(value);
  if (bytes === undefined) return undefined;
  try {
    const header: unknown = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
    // A critical extension changes what is signed, or how (RFC 7515 §4.1.11). None is known here.
    if (!isObject(header) || typeof header["alg"] !== "string" || header["crit"] !== undefined) return undefined;
    const { alg, kid, jku, typ } = header;
    return {
      alg,
      ...(typeof kid === "string" && { kid }),
      ...(typeof jku === "string" && { jku }),
      ...(typeof typ === "string" && { typ }),
      reduced: header[reducedMark] === true,
    };
  } catch {
    return undefined;
  }
}
