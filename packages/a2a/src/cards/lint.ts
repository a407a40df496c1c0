import { agentCardSchema, check, type Schema } from "../model/index.ts";
import { isObject } from "../model/schema.ts";
import { signableForms, versionsOf, type CardForm } from "./canonical.ts";
import { rules } from "./lint-rules.ts";
import { strictCardV03 } from "./lint-schema-v03.ts";
import { viewOf } from "./lint-view.ts";
import type { CardFinding } from "./port.ts";
import { strayMembers } from "./stray.ts";

/** Maximum number of findings. A card that somebody else wrote must not fill a screen. */
const most = 100;

/**
 * Finds what readers of a card could stumble over: what breaks the specification, and what works, but not for all or not as it
 * seems. A card of 1.0, of 0.3, or of both.
 *
 * @param card - The card, parsed from JSON.
 * @returns Every finding, errors first; at most 100, the last of which says that there are more.
 *
 * @example
 * ```ts
 * for (const { level, field, message } of lintCard(client.card)) console.log(`${level} ${field}: ${message}`);
 * ```
 */
export function lintCard(card: unknown): readonly CardFinding[] {
  if (!isObject(card) || Array.isArray(card)) return [{ level: "error", field: "", message: "A card is an object" }];
  const versions = intendedVersions(card);
  if (versions.length === 0)
    return [{ level: "error", field: "", message: "The card has neither supportedInterfaces (1.0) nor url (0.3)" }];
  const form = formFindings(card, versions);
  const findings = [...form, ...memberFindings(card, versions), ...readingFindings(card)];
  const view = viewOf(card);
  const known = new Set(form.map(({ field }) => field));
  // What has a wrong type needs no second finding on its content.
  for (const rule of rules) findings.push(...rule(view).filter(({ field }) => field === "" || !known.has(field)));
  const weight = ({ level }: CardFinding): number => (level === "error" ? 0 : 1);
  findings.sort((one, other) => weight(one) - weight(other));
  return findings.length <= most ? findings : [...findings.slice(0, most - 1), more];
}

const more: CardFinding = { level: "warning", field: "", message: `Only the first ${most - 1} findings are listed` };

type Json = Readonly<Record<string, unknown>>;

/** The versions that a card is meant to be of. One without its address is told by the members of its version alone. */
function intendedVersions(card: Json): readonly CardForm["version"][] {
  const versions = versionsOf(card);
  if (versions.length > 0) return versions;
  if ("supported_interfaces" in card) return ["1.0"];
  const isOld = ["url", "protocolVersion", "preferredTransport", "additionalInterfaces", "security"].some(
    (name) => name in card,
  );
  return isOld ? ["0.3"] : [];
}

function formFindings(card: Json, versions: readonly CardForm["version"][]): CardFinding[] {
  const findings = versions.flatMap((version) => {
    // A member that both versions have is checked by the first.
    const schema: Schema<unknown> = version === "1.0" ? agentCardSchema : strictCardV03;
    const checked = check(schema, cloned(card), "copy", most + 1);
    return checked.ok ? [] : checked.violations;
  });
  const first = findings.filter(({ field }, at) => findings.findIndex((other) => other.field === field) === at);
  return [
    ...first.map(({ field, description }): CardFinding => ({ level: "error", field, message: description })),
    ...(versions.includes("0.3") && card["protocolVersion"] === undefined ? [withoutVersion] : []),
  ];
}

const withoutVersion: CardFinding = {
  level: "warning",
  field: "protocolVersion",
  message: "A card of 0.3 must have it (0.3 §5.5). Readers take a card without it for one of 0.2.5",
};

/** The check may change what it checks. A value that cannot be copied came from no JSON. */
function cloned(card: object): unknown {
  try {
    return structuredClone(card);
  } catch {
    return card;
  }
}

/** Members that the versions of the card do not define, at any depth. */
function memberFindings(card: Json, versions: readonly CardForm["version"][]): CardFinding[] {
  return strayMembers(card, versions).map(({ field: path, readAs }) => {
    const field = path.slice(0, 200);
    if (readAs === undefined)
      return { level: "warning", field, message: "The version of this card does not define this member" };
    const message = `Some readers take this member for ${readAs}, others ignore it. Write ${readAs} (A2A 1.0 §5.5)`;
    return { level: "error", field, message };
  });
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
