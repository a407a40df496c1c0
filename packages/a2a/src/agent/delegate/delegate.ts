import type { AgentYield, Delegated, TurnBase } from "../../protocol/index.ts";
import { keyOf, mistake, type DelegateCall } from "./keys.ts";
import { Delegation } from "./delegation.ts";

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
  const key = keyOf(turn, calls, at, rows);
  if (rows.running.has(key))
    throw mistake(`two delegations at a time have the key ${JSON.stringify(call.options.key)}`);
  rows.running.add(key);
  rows.had.add(key);
  try {
    return yield* new Delegation(turn, rows, call, key, left).run();
  } finally {
    rows.running.delete(key);
  }
}
