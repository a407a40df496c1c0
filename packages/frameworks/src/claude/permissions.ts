import type { JsonValue } from "@parley/a2a/model";
import type { Turn } from "@parley/server";
import { approvalOf, type Answered, type Approval } from "../shared/approvals.ts";
import { askTool, questionsOf, type Question } from "./questions.ts";

/* `canUseTool` of the SDK as questions to the user. */

/** The reply to the SDK. */
export type Permission =
  | { readonly behavior: "allow"; readonly updatedInput: object }
  | { readonly behavior: "deny"; readonly message: string; readonly interrupt?: boolean };

/** `canUseTool`. `null` asks the user. */
export type CanUseTool = (
  toolName: string,
  input: Record<string, unknown>,
  options: { readonly toolUseID: string },
) => Promise<Permission | null>;

/** The permissions of one run. */
export class Permissions {
  /** Calls that wait for the user's approval. Such calls end the run. */
  readonly approvals: Approval[] = [];
  /** Questions that wait for the user. */
  questions: readonly Question[] | undefined;
  /** Digests of approved calls that have not been made yet. */
  readonly granted: string[];
  readonly #turn: Turn;
  readonly #own: CanUseTool | undefined;

  constructor(turn: Turn, own: CanUseTool | undefined, answered: Answered | undefined) {
    this.#turn = turn;
    this.#own = own;
    const { granted } = (turn.checkpoint ?? {}) as { readonly granted?: readonly string[] };
    this.granted = [...(granted ?? grantedIn(answered))];
  }

  readonly canUseTool: CanUseTool = async (toolName, input, options) => {
    const decided = (await this.#own?.(toolName, input, options)) ?? null;
    if (decided !== null) return decided;
    const { toolUseID: id } = options;
    const approval = await approvalOf({ approvalId: id, toolCall: { toolCallId: id, toolName, input } });
    const questions = toolName === askTool ? questionsOf(input) : undefined;
    if (questions !== undefined) this.questions ??= questions;
    else if (toolName === askTool) return { behavior: "deny", message: "The call has no questions" };
    else if (await this.#take(approval.digest)) return { behavior: "allow", updatedInput: input };
    else this.approvals.push(approval);
    // The run ends here, and its transcript is stored, because the answer may take days and reach another process.
    return { behavior: "deny", message: "The user is asked", interrupt: true };
  };

  /** An approval is for one call and is consumed before the call. After a crash during the call, the user is asked again. */
  async #take(digest: string): Promise<boolean> {
    const left = this.granted.filter((each) => each === digest).length;
    if (left === 0) return false;
    this.granted.splice(this.granted.indexOf(digest), 1);
    let isFirst = false;
    await this.#turn.step(`approval ${left} ${digest}`, () => {
      isFirst = true;
    });
    return isFirst;
  }
}

function grantedIn(answered: Answered | undefined): readonly string[] {
  const { approvals = [], decisions = [] } = answered ?? {};
  return approvals.filter((_, at) => decisions[at]?.approved === true).map(({ digest }) => digest);
}

/** Tells the model the user's decisions. */
export function decisionsAsText({ approvals, decisions }: Answered): string {
  const lines = approvals.map(({ toolName, input }, at) => {
    const { approved = false, reason } = decisions[at] ?? {};
    if (approved)
      return `The user approved this call. Make it now, with exactly these arguments: ${call(toolName, input)}`;
    return `The user did not approve this call. ${reason ?? "Do not make it."} ${call(toolName, input)}`;
  });
  return lines.join("\n");
}

function call(toolName: string, input: JsonValue): string {
  return `${toolName} ${JSON.stringify(input)}`;
}
