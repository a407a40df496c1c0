import type { JsonObject, Part } from "@parley/a2a/internal/model/index";
import { isObject } from "@parley/a2a/internal/model/schema";
import type { DelegationIntent, IntentPayload } from "./shapes.ts";

/** Media type of a data part with an intent. */
export const intentMediaType = "application/vnd.agp.intent+json";

/** Media type of a data part with a delegation. */
export const delegationMediaType = "application/vnd.agp.delegation+json";

/* The data parts. 0.3 has no media types for data, so a part without one is known by its members. */

/** Whether a data part holds an intent. */
export function isIntentPart(part: Part): boolean {
  return holds(part, intentMediaType, "target_capability");
}

/** Whether a data part holds a delegation. */
export function isDelegationPart(part: Part): boolean {
  return holds(part, delegationMediaType, "sub_intents");
}

function holds({ data, mediaType }: Part, own: string, member: string): boolean {
  if (data === undefined) return false;
  if (mediaType === own) return true;
  const isPlain = mediaType === undefined || mediaType === "application/json";
  return isPlain && isObject(data) && Object.hasOwn(data, member);
}

/** A data part with an intent. */
export function intentPart(value: IntentPayload): Part {
  return { data: value as unknown as JsonObject, mediaType: intentMediaType };
}

/** A data part with a delegation. */
export function delegationPart(value: DelegationIntent): Part {
  return { data: value as unknown as JsonObject, mediaType: delegationMediaType };
}
