import type { AgentYield, Delegated, DelegationWatch, TurnBase } from "@parley/a2a/internal/protocol/index";
import { contentOf, mistake, type DelegateCall } from "./keys.ts";
import { Delegation } from "./delegation.ts";
import { identify } from "./identity.ts";

/**
 * Delegates. `calls` are those of the turn in their order, and `at` is this one: of several with the same message, the order tells which is
 * which.
 */
export async function* delegate(
  turn: TurnBase,
  calls: readonly DelegateCall[],
  at: number,
  left: AbortSignal,
): AsyncGenerator<AgentYield, Delegated, void> {
  const call = calls[at] as DelegateCall;
  const rows = await turn.delegations();
  const identity = await identify(turn, calls, at, rows, left);
  const { key } = identity;
  if (rows.running.has(key))
    throw mistake(`two delegations at a time have the key ${JSON.stringify(call.options.key)}`);
  rows.running.add(key);
  rows.had.add(key);
  let watch: DelegationWatch | undefined;
  try {
    if (!rows.closed.has(key)) {
      watch = turn.watchDelegation?.({ card: call.client.card, parts: contentOf(call.message).parts });
    }
    return yield* new Delegation(turn, rows, { ...call, watch }, identity, left).run();
  } catch (error) {
    watch?.onEnd?.({ error });
    watch = undefined;
    throw error;
  } finally {
    // Also where the function leaves it, and where it is ended since this task asks its question.
    watch?.onEnd?.({});
    rows.running.delete(key);
  }
}
