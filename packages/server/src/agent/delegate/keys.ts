import { plain } from "@parley/a2a/internal/base/display";
import { utf8Length } from "@parley/a2a/internal/base/index";
import {
  A2AError,
  type AgentInterface,
  contentHash,
  hasCode,
  jsonHash,
  type Message,
  partsOf,
} from "@parley/a2a/internal/model/index";
import type {
  ClosedDelegation,
  DelegateClient,
  DelegateMessage,
  DelegateOptions,
  Delegations,
  DelegationWatch,
  OpenDelegation,
  TurnBase,
} from "@parley/a2a/internal/protocol/index";
import { CallFailed, DelegateCalls } from "./calls.ts";
import { maxId } from "./events.ts";
import { defined } from "@parley/a2a/internal/base/defined";

/* Identifies delegations across the attempts of a turn. */

/** A call of `turn.delegate()`. */
export interface DelegateCall {
  readonly client: DelegateClient;
  readonly message: DelegateMessage;
  readonly options: DelegateOptions;
  readonly watch?: DelegationWatch | undefined;
  /** W3C `traceparent` of the observer's span for it. */
  readonly trace?: string | undefined;
}

/** Content of a message, without members that the delegation sets. */
export type DelegatedContent = Omit<Message, "messageId" | "role">;

const maxKeyBytes = 400;

/** Throws for an invalid key. JavaScript callers can pass anything. */
export function checkKey(key: unknown): void {
  if (key !== undefined && (typeof key !== "string" || key === "" || utf8Length(key) > maxKeyBytes)) {
    throw mistake(`key must be a text of 1 to ${maxKeyBytes} bytes`);
  }
}

/** JavaScript callers can pass anything. */
export function contentOf(message: DelegateMessage): DelegatedContent {
  const isMessage = typeof message === "object" && message !== null && "parts" in message;
  const content = isMessage ? message : { parts: partsOf(message) };
  if (!Array.isArray(content.parts) || content.parts.length === 0) throw mistake("the message has no content");
  return content;
}

export function hashOf(content: DelegatedContent): string {
  return contentHash({ ...content, messageId: "", role: "ROLE_USER" });
}

/** The displayed name of an agent. */
export function nameOf({ card }: DelegateClient): string {
  return plain(card.name, 100) || "The other agent";
}

/** Identifies an agent. Agents that share an address differ by their tenant (A2A 1.0 §8.3.2). */
function addressOf({ card }: DelegateClient): string {
  const first = card.supportedInterfaces?.[0];
  return first === undefined ? card.name : addressOfInterface(first);
}

function addressOfInterface({ url, tenant }: AgentInterface): string {
  return tenant === undefined ? url : JSON.stringify([url, tenant]);
}

/** Maximum addresses per row, to keep rows small. */
const maxAddressCount = 8;

/** Hashes of the addresses of an agent. Cards with a common address belong to the same agent. */
function addressHashesOf({ card }: DelegateClient): readonly string[] {
  const addresses = card.supportedInterfaces?.slice(0, maxAddressCount).map(addressOfInterface) ?? [];
  return addresses.map(jsonHash);
}

/** The keys of calls, which are the same in each attempt of the turn while the agents keep their addresses. */
export function keysOf(turn: TurnBase, calls: readonly DelegateCall[]): readonly string[] {
  const counts = new Map<string, number>();
  return calls.map(({ client, message, options: { key } }) => {
    if (key !== undefined) return `=${key}`;
    const own = jsonHash([addressOf(client), hashOf(contentOf(message))]);
    const count = (counts.get(own) ?? 0) + 1;
    counts.set(own, count);
    return `${turn.number}:${own}:${count}`;
  });
}

export function mistake(text: string): A2AError {
  return new A2AError("InvalidAgentResponse", `turn.delegate(): ${text}`);
}

/** A delegation that has no stored row yet. */
interface NewDelegation {
  readonly turn: TurnBase;
  readonly rows: Delegations;
  readonly options: DelegateOptions;
  readonly content: DelegatedContent;
  readonly key: string;
  readonly client: DelegateClient;
}

/** Maximum per task. Their rows count toward the limit of all features. */
const maxDelegations = 128;

/** The row that is stored before the message is sent. */
export async function firstRow(init: NewDelegation): Promise<OpenDelegation> {
  const { turn, rows, content, key, client } = init;
  const messageId = await messageIdOf(turn, rows, key, 1);
  const contextId = await contextOf(init);
  const { taskId } = content;
  if ((contextId?.length ?? 0) > maxId || (taskId?.length ?? 0) > maxId)
    throw mistake(`contextId and taskId have at most ${maxId} characters`);
  const { open, closed } = rows;
  if (open.size + closed.size >= maxDelegations) throw mistake(`a task has at most ${maxDelegations} delegations`);
  const earlier = [...closed.values()].find(({ result }) => taskId !== undefined && result?.task?.id === taskId);
  const numbers = [...open.values(), ...closed.values()].map(({ number }) => number);
  return {
    number: earlier?.number ?? Math.max(0, ...numbers) + 1,
    agent: nameOf(client),
    addresses: addressHashesOf(client),
    since: rows.now,
    hash: hashOf(content),
    round: 1,
    messageId,
    unsure: true,
    ...defined({ contextId, taskId }),
  };
}

/** The id of a message, which is the same in each attempt. */
export function messageIdOf({ taskId }: TurnBase, rows: Delegations, key: string, round: number): Promise<string> {
  return rows.nameOf("message", taskId, key, String(round));
}

/** The message of a row: the delegation's first message, or the answer to a question. */
export async function messageOf(
  rows: Delegations,
  content: DelegatedContent,
  { answer, messageId, contextId, taskId }: OpenDelegation,
): Promise<Message> {
  const said = answer === undefined ? undefined : await rows.message(answer);
  const { parts, ...rest } = said === undefined ? content : { parts: said.parts };
  return { ...rest, messageId, role: "ROLE_USER", parts, ...defined({ contextId, taskId }) };
}

/** The context for the other agent: one per agent and per conversation of this agent. */
async function contextOf({ turn, rows, options, content, client }: NewDelegation): Promise<string | undefined> {
  const { contextId = content.contextId } = options;
  if (contextId !== undefined) return contextId === false ? undefined : contextId;
  return content.taskId === undefined ? rows.nameOf("context", turn.contextId, addressOf(client)) : undefined;
}

/** The delegation of a call: one of an earlier attempt, or a new one. */
export interface Identity {
  readonly key: string;
  /**
   * Set for a new delegation whose agent may already have received a message. `sent`: the row of that message, if its task is
   * unknown.
   */
  readonly doubt?: { readonly sent?: OpenDelegation };
}

/** Whether a call and a row have the same agent. `undefined`: unknown. */
type Answer = boolean | undefined;

/**
 * Identifies a call. Its key contains the agent's address. Even if a restart changes the address, no message may be sent twice. Several
 * agents may share a name, so a row with the same name and message matches only if its agent has the same task or a common address.
 */
export async function identify(
  turn: TurnBase,
  calls: readonly DelegateCall[],
  call: DelegateCall,
  rows: Delegations,
  left: AbortSignal,
): Promise<Identity> {
  const { key } = call.options;
  checkKey(key);
  const own = keysOf(turn, calls)[calls.indexOf(call)] as string;
  if (key !== undefined || turn.attempt === 1 || rows.open.has(own) || rows.closed.has(own)) return { key: own };
  // Sequentially, because two calls must not take the same row.
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
  return { key: own, ...defined({ doubt }) };
}

function isOpen(row: OpenDelegation | ClosedDelegation): row is OpenDelegation {
  return "messageId" in row;
}

/** Asks the agent of the call whether it has the row's task or message. */
async function isOf(calls: DelegateCalls, row: OpenDelegation | ClosedDelegation): Promise<Answer> {
  if (!isOpen(row)) {
    const { result, failure } = row;
    // The message can be sent again if the agent did not accept it.
    if (failure?.untaken === true) return false;
    const task = result?.task ?? failure?.task;
    return task === undefined ? undefined : hasTask(calls, task.id, task.contextId);
  }
  if (row.taskId !== undefined) return hasTask(calls, row.taskId, row.contextId);
  // A list without the message is not proof, because the message may still be on its way.
  return (await calls.find(row)) === undefined ? undefined : true;
}

/** Some agents use short ids, so the conversation must match, too. */
async function hasTask(calls: DelegateCalls, taskId: string, contextId: string | undefined): Promise<Answer> {
  try {
    const task = await calls.task(taskId);
    return task.id === taskId && (contextId === undefined || task.contextId === contextId);
  } catch (error) {
    if (!(error instanceof CallFailed)) throw error;
    return hasCode(error.cause, "TaskNotFound") ? false : undefined;
  }
}
