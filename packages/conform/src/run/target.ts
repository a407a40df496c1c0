import { type Caller, streams } from "../call/caller.ts";
import type { CallStep, Json, JsonMap, Operation, RawStep, Step, Test, Transport } from "../acts/format.ts";
import { find, findAll, member } from "../acts/values.ts";
import type { Skipped } from "../report/report.ts";
import type { Webhooks } from "../call/webhooks.ts";

/** A server under test, over one of its bindings. */
export interface Target {
  readonly card: JsonMap;
  readonly caller: Caller;
  /** Headers of every request, credentials among them. Names are in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** The credentials of a second caller, for tests that tasks are private. */
  readonly otherHeaders?: Readonly<Record<string, string>>;
  readonly variables: Readonly<Record<string, string>>;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly webhooks: Webhooks;
  /** Time limit of one step, in milliseconds. */
  readonly timeout: number;
  /** How long tests over this binding may still wait for the server's rate limit, in milliseconds. */
  readonly patience: { left: number };
  /** The test behaviors that the agent implements; absent: all. */
  readonly behaviors?: readonly string[];
  /** The agent's own words for the prefix of each behaviour. */
  readonly words?: Readonly<Record<string, string>>;
}

/**
 * The test behaviors that a card offers: the ids of its skills, and the first word of each of their examples. An example is a
 * prompt that the skill handles (A2A 1.0 §4.4.5), so an agent made for ACTS lists its prefixes there.
 */
export function offeredBehaviors(card: JsonMap): readonly string[] {
  const ids = findAll(card, "skills[*].id");
  const examples = findAll(card, "skills[*].examples[*]");
  return [...ids, ...examples].filter((text) => typeof text === "string").map((text) => text.split(/\s/, 1)[0] ?? "");
}

/** URIs of the extensions that the card requires of every request (A2A 1.0 §4.6). */
export function requiredExtensions(card: JsonMap): readonly string[] {
  const extensions = find(card, "capabilities.extensions");
  return (Array.isArray(extensions) ? (extensions as readonly Json[]) : [])
    .filter((extension) => member(extension, "required") === true)
    .map((extension) => member(extension, "uri"))
    .filter((uri) => typeof uri === "string");
}

/**
 * Whether the security requirements of the card (§4.4.1) let a test apply: where they have an empty alternative, callers without
 * credentials may call, and a test that wants them refused does not apply.
 */
function authenticates(card: JsonMap, { steps }: Test): boolean {
  const value = member(card, "securityRequirements");
  const requirements = Array.isArray(value) ? (value as readonly Json[]) : [];
  const strict = requirements.filter((requirement) => Object.keys(member(requirement, "schemes") ?? {}).length > 0);
  return strict.length > 0 && (strict.length === requirements.length || !steps.some(isAnonymous));
}

/** Whether a step calls without credentials. The extended card is only for known callers, whatever else is open (§3.1.11). */
function isAnonymous(step: Step): boolean {
  if (step.kind !== "call" && step.kind !== "raw") return false;
  return step.credentials === "none" && !(step.kind === "call" && step.operation === "get_extended_agent_card");
}

const pushOperations: readonly Operation[] = [
  "create_push_config",
  "get_push_config",
  "list_push_configs",
  "delete_push_config",
];

const noBehavior = "the agent does not offer the test behavior";
const noCredentials = "the card requires credentials";
const noVersions = "the client of this binding names no version but its own";
const noHeaders = "the headers of answers are not seen over this binding";

/** Why a test does not apply to this server (ACTS §12.5) or cannot be asked; undefined where it can be run. */
export function whySkipped(test: Test, target: Target): Skipped | undefined {
  const reason = notApplicable(test, target);
  return reason === undefined ? whyNotAsked(test, target) : { reason, applies: false };
}

function notApplicable(test: Test, target: Target): string | undefined {
  const { card, caller } = target;
  const { transport } = caller;
  const { preconditions, steps } = test;
  if (test.transports.length > 0 && !includes(test.transports, transport))
    return `only for ${test.transports.join(", ")}`;
  if (preconditions.transports.length > 0 && !includes(preconditions.transports, transport)) {
    return `only for ${preconditions.transports.join(", ")}`;
  }
  for (const [name, wanted] of Object.entries(preconditions.capabilities)) {
    // The official files name a capability `authentication`, which no card has. They mean the security requirements.
    const has = name === "authentication" ? authenticates(card, test) : (find(card, `capabilities.${name}`) ?? false);
    if (has !== wanted) return `for agents whose card says ${name}: ${JSON.stringify(wanted)}`;
  }
  const skills = find(card, "skills");
  const ids = (Array.isArray(skills) ? (skills as readonly Json[]) : []).map((skill) => member(skill, "id"));
  const skill = preconditions.skills.find((id) => !ids.includes(id));
  if (skill !== undefined) return `for agents with the skill ${skill}`;
  const extensions = find(card, "capabilities.extensions");
  const uris = (Array.isArray(extensions) ? (extensions as readonly Json[]) : []).map((one) => member(one, "uri"));
  const extension = preconditions.extensions.find((uri) => !uris.includes(uri));
  if (extension !== undefined) return `for agents with the extension ${extension}`;
  if (preconditions.requiredExtension && requiredExtensions(card).length === 0) {
    return "for agents that require an extension";
  }
  const { refusesInput } = preconditions;
  if (refusesInput !== undefined && inputModes(card).some((mode) => acceptsType(mode, refusesInput))) {
    return `for agents that do not take ${refusesInput}`;
  }
  if (steps.some(({ kind }) => kind === "client")) return "is about clients, not servers";
  if (steps.some(({ kind }) => kind === "raw") && caller.raw === undefined)
    return "has raw steps, which this binding has not";
  for (const step of steps) {
    if ((step.kind !== "call" && step.kind !== "raw") || expectsError(step)) continue;
    const streamed = step.kind === "raw" ? step.expectStream !== undefined : streams(step.operation);
    if (streamed && find(card, "capabilities.streaming") !== true) return "the agent does not stream";
    if (step.kind === "raw") continue;
    if (pushOperations.includes(step.operation) && find(card, "capabilities.pushNotifications") !== true) {
      return "the agent sends no push notifications";
    }
  }
  return undefined;
}

/** Whether a binding is one of those that a test names; a custom binding is none of them. */
function includes(named: readonly Transport[], transport: string): boolean {
  return named.some((one) => one === transport);
}

function expectsError(step: CallStep | RawStep): boolean {
  return step.expectError !== undefined || step.expect?.error === true;
}

/** Why a test that applies cannot be asked: the agent or the caller lacks something, or the binding does not show it. */
function whyNotAsked(test: Test, target: Target): Skipped | undefined {
  const { card, caller, behaviors, headers, otherHeaders } = target;
  const behavior = behaviors === undefined ? undefined : test.behaviors.find((one) => !behaviors.includes(one));
  if (behavior !== undefined) {
    const reason = `the agent does not offer the behavior ${behavior}`;
    return { reason, applies: true, kind: noBehavior, option: "behaviors" };
  }
  // An agent that reads other media types may refuse text before it looks at anything else.
  if (!takesText(card) && test.steps.some(sendsText)) return { reason: "the agent reads no text", applies: true };
  // Without credentials such an agent refuses everything but its public card, and that says nothing about the rest.
  if (requiresCredentials(card) && Object.keys(headers).length === 0 && !test.steps.every(fetchesCard)) {
    return { reason: noCredentials, applies: true, option: "headers" };
  }
  if (test.needs.includes("auth_credentials") && Object.keys(headers).length === 0)
    return { reason: "needs credentials", applies: true, option: "headers" };
  for (const step of test.steps) {
    if (step.kind !== "call" && step.kind !== "raw") continue;
    if (step.credentials === "other" && otherHeaders === undefined)
      return { reason: "needs a second caller", applies: true, option: "otherHeaders" };
    const wantsHeaders = [step.expect, step.expectError, step.expectStream].some((one) => one?.headers !== undefined);
    if (wantsHeaders && step.kind === "call" && step.operation !== "get_agent_card" && !caller.headers) {
      return { reason: noHeaders, applies: true };
    }
    if (step.kind === "call" && Object.hasOwn(step.headers, "a2a-version") && !caller.sendsAnyVersion) {
      return { reason: noVersions, applies: true };
    }
  }
  return undefined;
}

/** Whether every alternative of the card's security requirements names a scheme (A2A 1.0 §4.4.1). */
function requiresCredentials(card: JsonMap): boolean {
  const requirements = findAll(card, "securityRequirements[*]");
  return requirements.length > 0 && requirements.every((one) => Object.keys(member(one, "schemes") ?? {}).length > 0);
}

function fetchesCard(step: Step): boolean {
  return step.kind === "assertion" || (step.kind === "call" && step.operation === "get_agent_card");
}

function inputModes(card: JsonMap): readonly Json[] {
  return [...findAll(card, "defaultInputModes[*]"), ...findAll(card, "skills[*].inputModes[*]")];
}

/** Whether the agent reads text. Older cards say `text` for it. */
function takesText(card: JsonMap): boolean {
  const modes = inputModes(card);
  return modes.length === 0 || modes.some((mode) => mode === "text" || acceptsType(mode, "text/plain"));
}

/** Whether a step sends a text part. */
function sendsText(step: Step): boolean {
  if (step.kind !== "call" && step.kind !== "raw") return false;
  const sent = step.kind === "call" ? step.params : step.body;
  const paths = ["message.parts[*].text", "params.message.parts[*].text", "message.content[*].text"];
  return paths.some((path) => findAll(sent, path).length > 0);
}

/** Whether a media range includes a media type. A bare star, which some cards have, includes all. */
function acceptsType(mode: Json, mediaType: string): boolean {
  if (typeof mode !== "string") return false;
  return mode === "*" || mode === "*/*" || mode === mediaType || mode === mediaType.replace(/\/.*/, "/*");
}
