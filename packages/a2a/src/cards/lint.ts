import { agentCardSchema, check } from "../model/index.ts";
import { isObject } from "../model/schema.ts";
import { signableForms, versionsOf } from "./canonical.ts";
import { cardV03, cardV1 } from "./fields.ts";
import { rules } from "./lint-rules.ts";
import { viewOf } from "./lint-view.ts";
import type { CardFinding } from "./port.ts";

/** Most findings. A card that somebody else wrote must not fill a screen. */
const most = 100;

/** Members that a card of 0.3 has to have (0.3 §5.5). */
const requiredIn03 = [
  "name",
  "description",
  "version",
  "capabilities",
  "defaultInputModes",
  "defaultOutputModes",
  "skills",
];

/**
 * Finds what readers of a card could stumble over: what breaks the specification, and what works, but not for all or not as it
 * seems. A card of 1.0, of 0.3, or of both.
 *
 * @param card - The card, parsed from JSON.
 * @returns At most 100 findings, errors first.
 *
 * @example
 * ```ts
 * for (const { level, field, message } of lintCard(client.card)) console.log(`${level} ${field}: ${message}`);
 * ```
 */
export function lintCard(card: unknown): readonly CardFinding[] {
  if (!isObject(card) || Array.isArray(card)) return [{ level: "error", field: "", message: "A card is an object" }];
  const findings = [...formFindings(card), ...memberFindings(card), ...readingFindings(card)];
  const view = viewOf(card);
  for (const rule of rules) findings.push(...rule(view));
  const weight = ({ level }: CardFinding): number => (level === "error" ? 0 : 1);
  return findings.sort((one, other) => weight(one) - weight(other)).slice(0, most);
}

function formFindings(card: Readonly<Record<string, unknown>>): CardFinding[] {
  const versions = versionsOf(card);
  const message = "The card has neither supportedInterfaces (1.0) nor url (0.3)";
  if (versions.length === 0) return [{ level: "error", field: "", message }];
  if (versions.includes("1.0")) {
    const checked = check(agentCardSchema, cloned(card), "copy");
    return checked.ok
      ? []
      : checked.violations.map(({ field, description }) => ({ level: "error", field, message: description }));
  }
  return requiredIn03
    .filter((name) => card[name] === undefined)
    .map((field) => ({ level: "error", field, message: "is required" }));
}

/** The check may change what it checks. A value that cannot be copied came from no JSON. */
function cloned(card: object): unknown {
  try {
    return structuredClone(card);
  } catch {
    return card;
  }
}

/** Members of a card that nobody reads, such as a misspelled one. */
function memberFindings(card: Readonly<Record<string, unknown>>): CardFinding[] {
  const versions = versionsOf(card);
  const known = new Set([
    "signatures",
    ...(versions.includes("1.0") ? Object.keys(cardV1) : []),
    ...(versions.includes("0.3") ? Object.keys(cardV03) : []),
  ]);
  return Object.keys(card)
    .filter((name) => !known.has(name))
    .slice(0, most)
    .map((name) => ({
      level: "warning",
      field: name.slice(0, 100),
      message: "No reader of this version knows this member",
    }));
}

/** Members that the SDKs leave out of what they verify. */
function readingFindings(card: Readonly<Record<string, unknown>>): CardFinding[] {
  if (!versionsOf(card).includes("1.0")) return [];
  try {
    const { specification, reduced, same } = signableForms(card, "1.0");
    if (same || specification === reduced) return [];
  } catch (thrown) {
    return [
      { level: "error", field: "", message: thrown instanceof Error ? thrown.message : "The card cannot be signed" },
    ];
  }
  const message =
    "The SDKs of JavaScript and Python leave empty values out of what they verify, such as a requirement without scopes or a scheme " +
    "without members: for them a signature does not cover these (A2A 1.0 §8.4.1)";
  return [{ level: "warning", field: "", message }];
}
