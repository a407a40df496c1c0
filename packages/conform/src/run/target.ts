import { type Caller, streams } from "../call/caller.ts";
import type { CallStep, Json, JsonMap, Operation, RawStep, Step, Test } from "../acts/format.ts";
import { find, findAll, member } from "../acts/values.ts";
import type { Skipped } from "../report/report.ts";
import type { Webhooks } from "../call/webhooks.ts";

/** A server under test, over one binding. */
export interface Target {
  readonly card: JsonMap;
  readonly caller: Caller;
  /** Headers of every request, including credentials. Names are in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** Credentials of a second caller, to test that tasks are private. */
  readonly otherHeaders?: Readonly<Record<string, string>>;
  readonly variables: Readonly<Record<string, string>>;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly webhooks: Webhooks;
  /** Time limit of one step, in milliseconds. */
  readonly timeout: number;
  /** Remaining wait of this binding's tests for the server's rate limit, in milliseconds. */
  readonly patience: { left: number };
  /** Test behaviors that the agent implements. Default: all. */
  readonly behaviors?: readonly string[];
  /** The agent's own wording for the prefixes of behaviors. */
  readonly words?: Readonly<Record<string, string>>;
}

/**
 * The test behaviors that a card offers: the ids of its skills, and the first words of their examples. An example is a prompt that the skill
 * handles (A2A 1.0 §4.4.5), so an agent made for ACTS lists its prefixes there.
 */
export function offeredBehaviors(card: JsonMap): readonly string[] {
  const ids = findAll(card, "skills[*].id");
  const examples = findAll(card, "skills[*].examples[*]");
  return [...ids, ...examples].filter((text) => typeof text === "string").map((text) => text.split(/\s/, 1)[0] ?? "");
}

/** URIs of the extensions that the card requires of every request (A2A 1.0 §4.6). */
export function requiredExtensions(card: JsonMap): readonly string[] {
  return findAll(card, "capabilities.extensions[*]")
    .filter((extension) => member(extension, "required") === true)
    .map((extension) => member(extension, "uri"))
    .filter((uri) => typeof uri === "string");
}

/** For each alternative of the card's security requirements (A2A 1.0 §4.4.1), whether it names a scheme. */
function requirementsOf(card: JsonMap): readonly boolean[] {
  return findAll(card, "securityRequirements[*]").map((one) => Object.keys(member(one, "schemes") ?? {}).length > 0);
}

/**
 * Whether a test of authentication applies to the card. If an alternative names no scheme, callers need no credentials, and a test that
 * expects their rejection does not apply.
 */
function authenticates(card: JsonMap, { steps }: Test): boolean {
  const requirements = requirementsOf(card);
  return requirements.includes(true) && (!requirements.includes(false) || !steps.some(isAnonymous));
}

/** Whether every alternative of the card's security requirements names a scheme. */
function requiresCredentials(card: JsonMap): boolean {
  const requirements = requirementsOf(card);
  return requirements.length > 0 && !requirements.includes(false);
}

/** Whether a step calls without credentials. The extended card always requires them (§3.1.11). */
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

/** Why a test does not apply to this server (ACTS §12.5) or cannot run. undefined: it can run. */
export function whySkipped(test: Test, target: Target): Skipped | undefined {
  const reason = notApplicable(test, target);
  return reason === undefined ? whyNotRun(test, target) : { reason, applies: false };
}

function notApplicable(test: Test, target: Target): string | undefined {
  const { card, caller } = target;
  const { transport } = caller;
  const { preconditions, steps } = test;
  for (const transports of [test.transports, preconditions.transports]) {
    if (transports.length > 0 && !transports.some((one) => one === transport))
      return `only for ${transports.join(", ")}`;
  }
  for (const [name, wanted] of Object.entries(preconditions.capabilities)) {
    // The official files use a capability `authentication` that no card has. It means the security requirements.
    const has = name === "authentication" ? authenticates(card, test) : (find(card, `capabilities.${name}`) ?? false);
    if (has !== wanted) return `only for agents with the capability ${name}: ${JSON.stringify(wanted)}`;
  }
  const ids = findAll(card, "skills[*].id");
  const skill = preconditions.skills.find((id) => !ids.includes(id));
  if (skill !== undefined) return `only for agents with the skill ${skill}`;
  const uris = findAll(card, "capabilities.extensions[*].uri");
  const extension = preconditions.extensions.find((uri) => !uris.includes(uri));
  if (extension !== undefined) return `only for agents with the extension ${extension}`;
  if (preconditions.requiredExtension && requiredExtensions(card).length === 0) {
    return "only for agents that require an extension";
  }
  const { refusesInput } = preconditions;
  if (refusesInput !== undefined && inputModes(card).some((mode) => acceptsType(mode, refusesInput))) {
    return `only for agents that do not accept ${refusesInput}`;
  }
  if (steps.some(({ kind }) => kind === "client")) return "tests clients, not servers";
  if (steps.some(({ kind }) => kind === "raw") && caller.raw === undefined) {
    return "needs raw requests, which this binding does not support";
  }
  for (const step of steps) {
    if ((step.kind !== "call" && step.kind !== "raw") || expectsError(step)) continue;
    const streamed = step.kind === "raw" ? step.expectStream !== undefined : streams(step.operation);
    if (streamed && find(card, "capabilities.streaming") !== true) return "the agent does not stream";
    if (step.kind === "raw") continue;
    if (pushOperations.includes(step.operation) && find(card, "capabilities.pushNotifications") !== true) {
      return "the agent does not send push notifications";
    }
  }
  return undefined;
}

function expectsError(step: CallStep | RawStep): boolean {
  return step.expectError !== undefined || step.expect?.error === true;
}

/** Why a test that applies cannot run: the agent or the caller lacks something, or the binding hides it. */
function whyNotRun(test: Test, target: Target): Skipped | undefined {
  const { card, caller, behaviors, headers, otherHeaders } = target;
  const behavior = behaviors === undefined ? undefined : test.behaviors.find((one) => !behaviors.includes(one));
  if (behavior !== undefined) {
    const kind = "the agent does not offer the test behavior";
    return { reason: `${kind} ${behavior}`, applies: true, kind, option: "behaviors" };
  }
  // An agent that accepts only other media types may reject text before any other check.
  if (!takesText(card) && test.steps.some(sendsText))
    return { reason: "the agent does not accept text", applies: true };
  // Without credentials, such an agent rejects every call except for its public card, so other tests prove nothing.
  if (requiresCredentials(card) && Object.keys(headers).length === 0 && !test.steps.every(fetchesCard)) {
    return { reason: "the card requires credentials", applies: true, option: "headers" };
  }
  if (test.needs.includes("auth_credentials") && Object.keys(headers).length === 0) {
    return { reason: "needs credentials", applies: true, option: "headers" };
  }
  for (const step of test.steps) {
    if (step.kind !== "call" && step.kind !== "raw") continue;
    if (step.credentials === "other" && otherHeaders === undefined) {
      return { reason: "needs a second caller", applies: true, option: "otherHeaders" };
    }
    const wantsHeaders = [step.expect, step.expectError, step.expectStream].some((one) => one?.headers !== undefined);
    if (wantsHeaders && step.kind === "call" && step.operation !== "get_agent_card" && !caller.headers) {
      return { reason: "this binding does not show response headers", applies: true };
    }
    if (step.kind === "call" && Object.hasOwn(step.headers, "a2a-version") && !caller.sendsAnyVersion) {
      return { reason: "the client of this binding cannot request other versions", applies: true };
    }
  }
  return undefined;
}

function fetchesCard(step: Step): boolean {
  return step.kind === "assertion" || (step.kind === "call" && step.operation === "get_agent_card");
}

function inputModes(card: JsonMap): readonly Json[] {
  return [...findAll(card, "defaultInputModes[*]"), ...findAll(card, "skills[*].inputModes[*]")];
}

/** Whether the agent accepts text. Older cards write `text`. */
function takesText(card: JsonMap): boolean {
  const modes = inputModes(card);
  return modes.length === 0 || modes.some((mode) => mode === "text" || acceptsType(mode, "text/plain"));
}

function sendsText(step: Step): boolean {
  if (step.kind !== "call" && step.kind !== "raw") return false;
  const sent = step.kind === "call" ? step.params : step.body;
  const paths = ["message.parts[*].text", "params.message.parts[*].text", "message.content[*].text"];
  return paths.some((path) => findAll(sent, path).length > 0);
}

/** Whether a media range includes a media type. Some cards have a bare `*`, which includes all. */
function acceptsType(mode: Json, mediaType: string): boolean {
  if (typeof mode !== "string") return false;
  return mode === "*" || mode === "*/*" || mode === mediaType || mode === mediaType.replace(/\/.*/, "/*");
}
