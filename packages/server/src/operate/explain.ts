import { defined } from "@parley/a2a/internal/base/defined";
import { isTerminal } from "@parley/a2a/internal/model/index";
import type { OpenDelegation, OpenWait } from "@parley/a2a/internal/protocol/index";
import type { OperatingHost } from "../engine/shared/operating.ts";
import { isOver, isQueued, isWaitOf } from "../engine/run/task-rows.ts";
import { seenTurn, waitingRun } from "../engine/run/turn-input.ts";
import type { FeatureRow, OrderText, StoredRun, TaskHead } from "../store/index.ts";
import type { StoredRequest } from "../intask/row.ts";
import { nodeWord, type Act, type EndCause, type Explanation } from "./port.ts";
import { endCauses } from "./schemas.ts";
import { stepsOf } from "./steps.ts";

/* Explains why a task waits. */

/** The facts for the explanation of a task. */
export interface Facts {
  readonly head: TaskHead;
  /** Rows of `waitFeature`. */
  readonly waits: readonly FeatureRow[];
  /** Rows of `stepFeature`. */
  readonly steps: readonly FeatureRow[];
  /** Rows of `delegationFeature`. */
  readonly delegations: readonly FeatureRow[];
  /** Rows of `inTaskFeature`. */
  readonly requests: readonly FeatureRow[];
  /** Why the task failed, or who canceled it. */
  readonly end: { readonly cause?: EndCause | undefined; readonly act?: Act | undefined };
  /** When the task was suspended. Absent: it is not suspended, or an older release suspended it. */
  readonly suspended?: number | undefined;
  /** Number of tasks of the same agent that are earlier in the queue. */
  readonly ahead: number;
  readonly more: boolean;
  /** The order that pauses the agent, if any. */
  readonly pause: OrderText | undefined;
  /** Whether a node runs the agent. `undefined`: unknown. */
  readonly served: boolean | undefined;
  readonly host: Pick<OperatingHost, "nodes" | "silence">;
  /** The current time, in milliseconds since the Unix epoch. */
  readonly now: number;
}

/** All reasons why a task waits, the most immediate one first. */
export function explain(facts: Facts): readonly [Explanation, ...Explanation[]] {
  const { head } = facts;
  const { state, run } = head;
  if (isTerminal(state)) return [over(facts)];
  if (run !== undefined) return explainRun(facts, run);
  const held = heldBack(facts);
  if (isQueued(head)) return [held ?? queued(facts)];
  const waiting = waitingRun(head);
  if (waiting !== undefined) {
    const turn = seenTurn(waiting, head.checkpoint);
    const open = facts.waits.filter(isWaitOf(turn));
    const waits = open.flatMap((row) => waitOf(facts, turn, row));
    const isDue = open.some((row) => isOver(row, facts.now, facts.waits));
    const [first, ...rest] = isDue && held !== undefined ? [held, ...waits] : waits;
    if (first !== undefined) return [first, ...rest];
  }
  if (state === "TASK_STATE_AUTH_REQUIRED") return [authorization(facts)];
  if (state === "TASK_STATE_INPUT_REQUIRED") {
    const help = `parley send URL TEXT --task ${quoted(head.task.taskId)}`;
    return [{ kind: "input", text: "The task waits for a message of its owner", help, since: iso(head.statusTime) }];
  }
  return [held ?? lost(head)];
}

function over({ head, end: { cause, act } }: Facts): Explanation {
  const { state, task } = head;
  const why = act === undefined ? cause && `, because ${endCauses[cause]}` : whoOf({ by: "an operator", ...act });
  const done = { kind: "done", state, since: iso(head.statusTime), ...defined({ cause }) } as const;
  const text = `The task is over: ${short(state)}${why ?? ""}`;
  if (state !== "TASK_STATE_FAILED") return { ...done, text };
  // The server does not know where its log goes.
  const log = `For details, filter the log of its server, by default its standard error, with: parley logs --task ${quoted(task.taskId)}`;
  const about = cause === "reported" ? "" : `. ${log}`;
  return { ...done, text: `${text}${about}. A new task can continue it`, help: commandFor("resume", head) };
}

function whoOf({ by, reason }: Pick<Act, "by" | "reason">): string {
  return `${by === undefined ? "" : ` by ${by}`}${reason === undefined ? "" : `: ${reason}`}`;
}

function explainRun(facts: Facts, run: StoredRun): readonly [Explanation, ...Explanation[]] {
  const { head, host, now, steps } = facts;
  const { holder, leaseUntil = 0 } = head;
  if (run.suspended === true) {
    const { deaths = 0 } = run;
    const text = `The task is suspended: its process died on every attempt (${deaths} deaths)`;
    const since = iso(facts.suspended ?? head.statusTime);
    return [{ kind: "suspended", text, help: commandFor("resume", head), deaths, since }];
  }
  if (holder === undefined) return [heldBack(facts) ?? lost(head)];
  const nodes = host.nodes();
  const silentMs = nodes.size === 0 ? Math.max(0, now - leaseUntil) : (nodes.get(holder) ?? Infinity);
  if (nodes.size === 0 ? silentMs > 0 : silentMs >= host.silence) {
    const ms = Number.isFinite(silentMs) ? silentMs : now - head.statusTime;
    const text = `Node ${nodeWord(holder)} has been silent for ${ms} ms; another node takes the task over`;
    const held = heldBack(facts);
    const silent = { kind: "nodeSilent", text, node: holder, silentMs: ms, since: iso(now - ms) } as const;
    return held === undefined ? [silent] : [held, silent];
  }
  const delegations = facts.delegations.map((row) => delegation(head, JSON.parse(row.value) as OpenDelegation));
  const [first, ...rest] = delegations;
  if (first !== undefined) return [first, ...rest];
  if (head.state === "TASK_STATE_AUTH_REQUIRED") return [authorization(facts)];
  const begun = stepsOf(steps, run.turn).flatMap(({ name, state }) => (state === "begun" ? [name] : []));
  const doing = begun.length === 0 ? "" : `, in step ${begun.map((name) => JSON.stringify(name)).join(", ")}`;
  const since = iso(head.statusTime);
  const text = `Node ${nodeWord(holder)} executes turn ${run.turn}, attempt ${run.attempt}${doing}. The time is that of its last status; cancel the task only if it is stuck`;
  return [{ kind: "running", text, help: commandFor("cancel", head), node: holder, since, steps: begun }];
}

/** Why a due task is not started. */
function heldBack({ head, pause, served }: Facts): Explanation | undefined {
  const { agent } = head.task;
  const since = iso(head.statusTime);
  if (pause !== undefined) {
    const { by, reason } = pause;
    const text = `Agent ${agent} is paused${whoOf(pause)}`;
    const help = `parley ops unpause ${quoted(agent)}`;
    return { kind: "agentPaused", text, help, agent, since: iso(pause.time), ...defined({ by, reason }) };
  }
  if (served === true) return undefined;
  const text =
    served === false
      ? `No node serves agent ${agent}: start a server that does`
      : `This server does not serve agent ${agent}; another node has to`;
  return { kind: "agentNotServed", text, help: "parley ops nodes", agent, since };
}

function lost(head: TaskHead): Explanation {
  const since = iso(head.leaseUntil ?? head.statusTime);
  return { kind: "lost", text: "No node holds the run; one takes it over", help: commandFor("cancel", head), since };
}

function queued({ head, ahead, more }: Facts): Explanation {
  const count =
    ahead === 0 ? "It is the first" : `${more ? "More than " : ""}${ahead} ${ahead === 1 ? "is" : "are"} before it`;
  const text = `The task is in the queue of its agent for a node with room (limits.runs). ${count}`;
  return { kind: "queued", text, help: "parley ops nodes", since: iso(head.statusTime), ahead, more };
}

function waitOf({ head }: Facts, turn: number, { key, value }: FeatureRow): readonly Explanation[] {
  const { event, until, since: began = head.statusTime } = JSON.parse(value) as OpenWait;
  const since = iso(began);
  const wait = key.slice(`${turn}.`.length);
  const help = commandFor("drop-wait", head, wait);
  const to = until === undefined ? undefined : iso(until);
  if (event !== undefined) {
    const end = to === undefined ? "" : `, until ${to}`;
    const name = JSON.stringify(event);
    const text = `The task waits for the event ${name}, which the application signals with signal()${end}. Dropping the wait ends it like a timeout`;
    return [{ kind: "event", text, help, wait, event, since, ...defined({ until: to }) }];
  }
  return to === undefined ? [] : [{ kind: "time", text: `The task waits until ${to}`, help, wait, until: to, since }];
}

function delegation(head: TaskHead, { agent, taskId, since: began = head.statusTime }: OpenDelegation): Explanation {
  const which = taskId === undefined ? "an answer" : `task ${taskId}`;
  const text = `The task waits for ${which} of agent ${agent}`;
  const since = iso(began);
  return { kind: "delegation", text, help: commandFor("cancel", head), agent, since, ...defined({ taskId }) };
}

function authorization({ head, requests }: Facts): Explanation {
  const open = requests.map(({ value }) => JSON.parse(value) as StoredRequest).find(({ state }) => state === "open");
  const since = iso(head.statusTime);
  const text = "The task waits for an authorization by its user";
  const help = commandFor("cancel", head);
  return { kind: "authorization", text, help, since, ...(open !== undefined && { expires: iso(open.expires) }) };
}

/** A command of the terminal for a task. */
export function commandFor(act: string, { task }: Pick<TaskHead, "task">, name?: string): string {
  const words = [task.taskId, ...(name === undefined ? [] : [name])].map(quoted).join(" ");
  return `parley ops ${act} ${words}${task.agent === "/" ? "" : ` --agent ${quoted(task.agent)}`}`;
}

/** Quotes a word for a shell. */
export function quoted(word: string): string {
  return /^[\w./:@%+=][\w./:@%+=-]*$/.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`;
}

export function iso(time: number): string {
  return new Date(Math.min(8.64e15, Math.max(-8.64e15, time))).toISOString();
}

export function short(state: string): string {
  return state.replace("TASK_STATE_", "").toLowerCase().replace("_", " ");
}
