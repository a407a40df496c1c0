import { withoutSlashes } from "../base/index.ts";
import { A2AError, type AgentCard, type SecurityRequirement, type AgentSkill } from "../model/index.ts";
import {
  anonymous,
  carryVerifiedToken,
  unmet,
  isMethod,
  isSend,
  resourceOf,
  spreadable,
  type CallContext,
  type OperationName,
  type Principal,
  type Unmet,
  type AgentService,
} from "../protocol/index.ts";
import { unauthenticated } from "./challenge.ts";
import type { AuthenticationPlace, Authenticator, ChallengeProblem, SkillOf, Authorizer } from "./port.ts";

/** The requirements of an agent on its callers. */
interface Guard {
  /** The card, with its requirements and its skills' requirements. */
  readonly card: Pick<AgentCard, "securityRequirements" | "skills">;
  /** Whether the card has the authenticator's own requirements, which every accepted caller satisfies. */
  readonly byAuthenticator: boolean;
  readonly authenticator: Authenticator;
  /** The URLs and schemes for authentication. `resources` has the URLs of the agent and the server. */
  readonly place: AuthenticationPlace;
  readonly skillOf: SkillOf;
}

/**
 * Checks the caller of an operation against the card of its agent: the audience of the token, the requirements of the card,
 * and the requirements of the skill that a message names (A2A 1.0 §7.4, §7.5).
 *
 * @throws A2AError `Unauthenticated` or `PermissionDenied`, with a challenge.
 */
export function checkCaller(guard: Guard, operation: OperationName, request: unknown, context: CallContext): void {
  const { card, byAuthenticator, place } = guard;
  const { principal } = context;
  if (principal.audience !== undefined && !isFor(principal.audience, place.resources)) {
    const problem = { error: "invalid_token", description: "The token is for another resource" };
    throw unauthenticated(problem.description, challengesOf(guard, Object.keys(principal.schemes ?? {}), problem));
  }
  if (principal.schemes !== undefined || !byAuthenticator) demand(guard, card.securityRequirements, principal);
  if (operation === "GetExtendedAgentCard" && principal === anonymous) {
    throw unauthenticated("Only authenticated callers may read this card", challengesOf(guard));
  }
  if (!isSend(operation, request)) return;
  const skill = guard.skillOf(request, context);
  if (skill === undefined) return;
  demand(guard, card.skills.find(({ id }) => id === skill)?.securityRequirements, principal);
}

function demand(guard: Guard, requirements: readonly SecurityRequirement[] | undefined, principal: Principal): void {
  const lacking = unmet(requirements, principal);
  if (lacking === undefined) return;
  const scopes = lacking.find(({ schemes }) => schemes.length === 0)?.scopes;
  if (scopes === undefined) throw unauthenticated(undefined, challengesOf(guard, missing(lacking)));
  const scope = [...new Set(Object.values(scopes).flat())].join(" ");
  const challenge = challengesOf(guard, Object.keys(scopes), { error: "insufficient_scope", scope }).join(", ");
  throw new A2AError(
    "PermissionDenied",
    `The credentials lack a scope: ${scope}`,
    challenge === "" ? {} : { challenge },
  );
}

function missing(lacking: readonly Unmet[]): readonly string[] {
  return [...new Set(lacking.flatMap(({ schemes }) => schemes))];
}

function challengesOf(
  { authenticator, place }: Guard,
  names?: readonly string[],
  problem?: ChallengeProblem,
): readonly string[] {
  const all = Object.entries(authenticator.challenges?.(place, problem) ?? {});
  const some = names === undefined ? all : all.filter(([name]) => names.includes(name));
  return [...new Set(some.map(([, challenge]) => challenge))];
}

/** Whether one of the audiences of a token is one of the resources. Ignores trailing slashes. */
export function isFor(audience: readonly string[], resources: readonly string[]): boolean {
  return audience.some((one) => resources.some((resource) => withoutSlashes(one) === withoutSlashes(resource)));
}

/**
 * A caller with its schemes. If an authenticator returns none and has a single requirement, the caller has satisfied it, because otherwise
 * the authenticator would have rejected it.
 */
export function vouched({ securityRequirements }: Authenticator, principal: Principal): Principal {
  checkSubject(principal);
  const [only, ...others] = securityRequirements;
  if (principal.schemes !== undefined || principal === anonymous) return principal;
  if (only === undefined || others.length > 0) return principal;
  return carryVerifiedToken({ ...principal, schemes: grantsOf(only, principal.scopes ?? []) }, principal);
}

/**
 * Rejects a value without a subject, which JavaScript code can return, because all such callers would share their tasks.
 *
 * @throws TypeError. Remote callers get an `InternalError`.
 */
export function checkSubject(principal: Partial<Principal> | undefined): void {
  if (typeof principal?.subject === "string" && principal.subject !== "") return;
  throw new TypeError("An authenticator returned a caller without a subject");
}

function grantsOf({ schemes = {} }: SecurityRequirement, scopes: readonly string[]): Record<string, readonly string[]> {
  return Object.fromEntries(
    Object.entries(schemes).map(([name, { list = [] }]) => [name, [...new Set([...list, ...scopes])]] as const),
  );
}

/** The skill that a message is for, in its metadata: `skillId`. */
export const skillInMetadata: SkillOf = ({ message }) => {
  const skill = message.metadata?.["skillId"];
  return typeof skill === "string" ? skill : undefined;
};

/** The authorizer of an agent. */
export interface Authorization {
  readonly authorizer: Authorizer;
  /** The id of the agent. */
  readonly agent: string;
  /** The skills of its card. */
  readonly skills: readonly Pick<AgentSkill, "id">[];
  readonly skillOf: SkillOf;
  /** Called for each call that the authorizer hides, for the audit. The caller gets the answer for a missing task. */
  onHidden(operation: OperationName, request: unknown, context: CallContext): void;
}

/** A service that asks an authorizer before each call. */
export function authorized(service: AgentService, authorization: Authorization): AgentService {
  const { authorizer, agent, onHidden } = authorization;
  /** The context to continue with. Rejects if the call is denied. */
  async function check(operation: OperationName, request: unknown, context: CallContext): Promise<CallContext> {
    const { principal } = context;
    const skill = skillFor(authorization, operation, request, context);
    const about = { ...resourceOf(operation, request), ...(skill !== undefined && { skill }) };
    const access = await authorizer({ operation, principal, agent, context, ...about });
    if (access === "allow") return context;
    if (access !== "hide" || !canHide(operation, request)) throw new A2AError("PermissionDenied");
    onHidden(operation, request, context);
    return { ...spreadable(context), hidden: true };
  }
  return {
    async call(operation, request, context) {
      return service.call(operation, request, await check(operation, request, context));
    },
    async stream(operation, request, context) {
      return service.stream(operation, request, await check(operation, request, context));
    },
  };
}

/** The skill that a message is for, if the card has it. */
function skillFor(
  { skills, skillOf }: Authorization,
  operation: OperationName,
  request: unknown,
  context: CallContext,
): string | undefined {
  if (!isSend(operation, request)) return undefined;
  const skill = skillOf(request, context);
  return skills.some(({ id }) => id === skill) ? skill : undefined;
}

/** Whether `hide` is possible for a call: it names a task, or lists tasks. */
function canHide(operation: OperationName, request: unknown): boolean {
  // Methods of extensions may ignore `hidden`.
  if (isMethod(operation)) return false;
  return operation === "ListTasks" || resourceOf(operation, request).taskId !== undefined;
}

/**
 * A function for the option `ownerOf`: tasks, conversations and webhooks of a caller belong to its organization. Only callers
 * of that organization see its tasks, conversations and webhooks. A caller without an organization shares nothing.
 *
 * @example
 * ```ts
 * const authenticator = bearer({ "a-long-random-token": { subject: "ada", organization: "acme" } });
 * await serve(agent, { authenticator, ownerOf: byOrganization });
 * ```
 */
export function byOrganization({ organization, subject }: Principal): string {
  // The default `ownerOf` returns the same JSON list for a caller without an organization, so such a caller keeps its tasks.
  return JSON.stringify(organization === undefined ? [null, subject] : [organization]);
}
