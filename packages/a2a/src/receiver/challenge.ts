import { isObject } from "../model/schema.ts";
import type { UniversalResponse } from "../protocol/index.ts";

/** Longest body of a challenge in characters. */
const longest = 1024;

/**
 * The answer to a challenge, by which a server makes sure that the receiver wants the events of a webhook. `undefined` where the body
 * is none: an event has no such member.
 */
export function challengeOf(body: string): UniversalResponse | undefined {
  if (body.length > longest || !body.includes('"challenge"')) return undefined;
  let value: unknown;
  try {
    value = JSON.parse(body);
  } catch {
    return undefined;
  }
  if (!isObject(value) || typeof value["challenge"] !== "string" || Object.keys(value).length > 1) return undefined;
  return {
    status: 200,
    headers: { "content-type": "application/json", "cache-control": "no-store" },
    body: JSON.stringify({ challenge: value["challenge"] }),
  };
}
