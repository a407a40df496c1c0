import { mapValues } from "../base/index.ts";
import { isObject } from "../model/schema.ts";

/*
 * The reduced form of a card of 0.3, as the SDK 0.3 of Python signs it: without the default values of its types, without empty values, and
 * in ASCII.
 */

type Json = Readonly<Record<string, unknown>>;

/** A card of 0.3 without the values that the types of the SDK have by default. `drops`: whether the type of a scheme is one of these. */
export function withoutDefaults(card: unknown, drops: (scheme: Json) => boolean): unknown {
  if (!isObject(card)) return card;
  const { protocolVersion, preferredTransport, securitySchemes, ...rest } = card;
  return {
    ...rest,
    ...(protocolVersion !== "0.3.0" && { protocolVersion }),
    ...(preferredTransport !== "JSONRPC" && { preferredTransport }),
    ...(securitySchemes !== undefined && {
      securitySchemes: isObject(securitySchemes)
        ? mapValues(securitySchemes, (scheme) => {
            if (!isObject(scheme) || !drops(scheme)) return scheme;
            const { type: _, ...others } = scheme;
            return others;
          })
        : securitySchemes,
    }),
  };
}

/**
 * Whether a card has the members whose default values are left out. A card without its version is read as one of 0.2.5, and a scheme
 * without its type as one that nobody knows, so the reduced form would mean something else.
 */
export function hasDefaulted({ protocolVersion, securitySchemes }: Json): boolean {
  const schemes = isObject(securitySchemes) ? Object.values(securitySchemes) : [];
  return protocolVersion !== undefined && schemes.every((one) => isObject(one) && one["type"] !== undefined);
}

/** Whether the other members of a scheme say of what type it is, so that nothing is lost without it. */
export function isImplied({ type, ...scheme }: Json): boolean {
  const own =
    "in" in scheme
      ? "apiKey"
      : "scheme" in scheme
        ? "http"
        : "flows" in scheme
          ? "oauth2"
          : "openIdConnectUrl" in scheme
            ? "openIdConnect"
            : "mutualTLS";
  return type === own;
}

/** The same JSON in ASCII. */
export function ascii(json: string): string {
  return json.replace(/[\u007f-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
}
