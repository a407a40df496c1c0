import { hasCode } from "@parley/a2a/internal/model/index";
import type { ClosedDelegation, Delegations, OpenDelegation, TurnBase } from "@parley/a2a/internal/protocol/index";
import { DelegateCalls } from "./calls.ts";
import { CallFailed } from "./errors.ts";
import { addressHashesOf, checkKey, contentOf, hashOf, keysOf, nameOf, type DelegateCall } from "./keys.ts";

/* Which delegation of an earlier attempt a call is, where the agent may have another address since. */

/** Which delegation a call is. */
export interface Identity {
  readonly key: string;
  /**
   * Set for a new delegation whose agent may be one that was asked already. `sent`: the row of the message that it may have, where its
   * task is not known.
   */
  readonly doubt?: { readonly sent?: OpenDelegation };
}

/** Whether the agent of a call is that of a row. `undefined`: it cannot be known. */
type Answer = boolean | undefined;

/**
 * Identifies the call at an index. A key has the address of the agent, and an agent may have another one after a restart: nothing must be sent
 * to it twice. But agents with one name may be several, and a name and a message are then no proof. So a row with that name and message is
 * taken only where its agent has the same task, or an address in common.
 */
export async function identify(
  turn: TurnBase,
  calls: readonly DelegateCall[],
  at: number,
  rows: Delegations,
  left: AbortSignal,
): Promise<Identity> {
  const call = calls[at] as DelegateCall;
  const { key } = call.options;
  checkKey(key);
  const own = keysOf(turn, calls)[at] as string;
  if (key !== undefined || turn.attempt === 1 || rows.open.has(own) || rows.closed.has(own)) return { key: own };
  // One after the other: two calls must not take the same row.
  const found = rows.identified.then(() => search(turn, calls, call, rows, own, left));
  rows.identified = found.catch(() => {});
  return found;
}

async function search(
  turn: TurnBase,
  calls: readonly DelegateCall[],
  call: DelegateCall,
  rows: Delegations,
  own: string,
  left: AbortSignal,
): Promise<Identity> {
  const { client, message, options } = call;
  const hash = hashOf(contentOf(message));
  const agent = nameOf(client);
  const addresses = addressHashesOf(client);
  const keys = keysOf(turn, calls);
  const others = new Set(
    calls.flatMap((each) => addressHashesOf(each.client)).filter((each) => !addresses.includes(each)),
  );
  let doubt: Identity["doubt"];
  for (const [key, row] of [...rows.open, ...rows.closed]) {
    const isFree = key.startsWith(`${turn.number}:`) && !keys.includes(key) && !rows.had.has(key);
    if (!isFree || row.hash !== hash || row.agent !== agent) continue;
    const isCommon = row.addresses?.some((each) => addresses.includes(each)) === true;
    // This attempt calls another agent at the address of the row.
    if (!isCommon && row.addresses?.some((each) => others.has(each)) === true) continue;
    const signal = AbortSignal.any([turn.signal, left]);
    const isSame = isCommon || (await isOf(new DelegateCalls(turn, client, options, signal, undefined), row));
    if (isSame === true) {
      rows.had.add(key);
      return { key };
    }
    if (isSame === false || doubt?.sent !== undefined) continue;
    doubt = isOpen(row) && row.taskId === undefined ? { sent: row } : {};
    // Another call with the same message is another delegation.
    if (doubt.sent !== undefined) rows.had.add(key);
  }
  return { key: own, ...(doubt !== undefined && { doubt }) };
}

function isOpen(row: OpenDelegation | ClosedDelegation): row is OpenDelegation {
  return "messageId" in row;
}

/** Asks the agent for what the agent of a row has. */
async function isOf(calls: DelegateCalls, row: OpenDelegation | ClosedDelegation): Promise<Answer> {
  if (!isOpen(row)) {
    const { result, failure } = row;
    // An agent that did not take the message may be sent it again.
    if (failure?.untaken === true) return false;
    const task = result?.task ?? failure?.task;
    return task === undefined ? undefined : hasTask(calls, task.id, task.contextId);
  }
  if (row.taskId !== undefined) return hasTask(calls, row.taskId, row.contextId);
  // A list without the message is no proof: the message may be on its way.
  return (await calls.find(row)) === undefined ? undefined : true;
}

/** The ids of some agents are short: the conversation has to be the same, too. */
async function hasTask(calls: DelegateCalls, taskId: string, contextId: string | undefined): Promise<Answer> {
  try {
    const task = await calls.task(taskId);
    return task.id === taskId && (contextId === undefined || task.contextId === contextId);
  } catch (error) {
    if (!(error instanceof CallFailed)) throw error;
    return hasCode(error.cause, "TaskNotFound") ? false : undefined;
  }
}
