import { A2AError, type AgentSkill } from "../model/index.ts";
import {
  isMethod,
  resourceOf,
  spreadable,
  type AgentService,
  type CallContext,
  type OperationName,
  type Operations,
} from "../protocol/index.ts";
import type { Authorizer, SkillOf } from "./port.ts";

/** The skill that a message is for, in its metadata: `skillId`. */
export const skillInMetadata: SkillOf = ({ message }) => {
  const skill = message.metadata?.["skillId"];
  return typeof skill === "string" ? skill : undefined;
};

/** Who is asked about the calls of an agent. */
export interface Authorization {
  readonly authorizer: Authorizer;
  /** The id of the agent. */
  readonly agent: string;
  /** The skills of its card. */
  readonly skills: readonly Pick<AgentSkill, "id">[];
  readonly skillOf: SkillOf;
  /** Is told of each call that the authorizer hides, because its caller gets an ordinary answer. */
  onHidden(operation: OperationName, request: unknown, context: CallContext): void;
}

/** A service that asks an authorizer before each call. */
export function authorized(service: AgentService, authorization: Authorization): AgentService {
  const { authorizer, agent, onHidden } = authorization;
  /** The context to go on with. Rejects where the call is denied. */
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

/** The skill that a message is for, where the card has it. */
function skillFor(
  { skills, skillOf }: Authorization,
  operation: OperationName,
  request: unknown,
  context: CallContext,
): string | undefined {
  if (operation !== "SendMessage" && operation !== "SendStreamingMessage") return undefined;
  const skill = skillOf(request as Operations["SendMessage"]["request"], context);
  return skills.some(({ id }) => id === skill) ? skill : undefined;
}

/** Whether a call would get an answer that says that there is no such task, or none in a list. */
function canHide(operation: OperationName, request: unknown): boolean {
  // Only operations of the protocol are known to look at `hidden`.
  if (isMethod(operation)) return false;
  return operation === "ListTasks" || resourceOf(operation, request).taskId !== undefined;
}
