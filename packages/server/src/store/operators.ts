import { utf8Length } from "@parley/a2a/internal/base/index";
import { wellFormed } from "@parley/a2a/internal/base/json-text";
import type { TaskState } from "@parley/a2a/internal/model/index";
import type { AuditedAct, TaskHead } from "./append.ts";

/* Operators' queries over all tasks, their orders, and the audit of their acts. */

/** Filters for a list of tasks. An absent filter matches everything. */
export interface OperatorQuery {
  /** Only tasks of this agent. */
  readonly agent?: string;
  /** Only tasks of the owner with this stored name. */
  readonly owner?: string;
  /** Only tasks in one of these states. */
  readonly states?: readonly TaskState[];
  /** Only tasks with a status of this time or later, in milliseconds since the Unix epoch. */
  readonly since?: number;
  /** Only tasks with an older status, in milliseconds since the Unix epoch. */
  readonly before?: number;
  /** The order by status time. Tasks with the same time are ordered by creation, in the same direction. */
  readonly order: "oldest" | "newest";
  /** Maximum tasks on the page. */
  readonly limit: number;
  /** Only tasks after this position: the `next` of the page before. */
  readonly after?: OperatorPosition;
}

/** A position in the list of an operator. It does not name a task, so it stays valid when the task at this position changes. */
export interface OperatorPosition {
  /** Status time of the last task of the page, in milliseconds since the Unix epoch. */
  readonly statusTime: number;
  /** The number of that task: the store numbers tasks in the order of their creation. */
  readonly number: number;
}

/** A page of the list of an operator. */
export interface OperatorPage {
  /** The tasks, without checkpoints and states. */
  readonly heads: readonly TaskHead[];
  /** Where the next page begins. Absent on the last page. */
  readonly next?: OperatorPosition;
}

/** How many tasks an agent has. */
export interface AgentCounts {
  /** The agent. */
  readonly agent: string;
  /** Tasks by state. States without a task are left out. */
  readonly states: Readonly<Partial<Record<TaskState, number>>>;
}

/** An order that applies until it is withdrawn, such as the pause of an agent. */
export interface StandingOrder {
  /** 1 to `operatorBounds.name` bytes. */
  readonly name: string;
  /** JSON text. At most `operatorBounds.value` bytes. */
  readonly value: string;
}

/** An act in the audit. */
export interface StoredAct extends AuditedAct {
  /** The number of the act, which rises with each act. */
  readonly number: number;
}

/** A change by an operator that does not affect a task. It is stored in one transaction. */
export interface OperatorChange {
  /** An order to set. `value: null` withdraws it. `if` is the expected value; `null`: no order. */
  readonly order?: {
    readonly name: string;
    readonly value: string | null;
    readonly if: string | null;
  };
  /** An act to add to the audit. */
  readonly act?: AuditedAct;
}

/** Selects acts to read. */
export interface ActQuery {
  /** Only acts about this subject. */
  readonly subject?: string;
  /** Only acts with a lower number: the number of the previous page's last act. */
  readonly before?: number;
  /** Maximum acts. */
  readonly limit: number;
}

/** Limits of orders and acts. */
export const operatorBounds: {
  /** Maximum bytes of an order's name, and of an act's subject. */
  readonly name: number;
  /** Maximum bytes of JSON of an order, and of an act. */
  readonly value: number;
  /** Maximum number of orders. */
  readonly orders: number;
  /** How many of the newest acts the audit keeps. */
  readonly acts: number;
} = { name: 2_048, value: 32 << 10, orders: 1_000, acts: 100_000 };

/**
 * Operators' queries and orders. An act that changes a task is stored with the change, by the effect `act` of `append`. Methods reject like
 * the methods of `Store`.
 */
export interface StoreOperators {
  /** Tasks of all owners. The cost depends on the page, and on the number of requested agents or the owner's agents. */
  tasks(query: OperatorQuery): Promise<OperatorPage>;
  /** The exact number of tasks by agent and state, for at most `limit` agents, by name. Uses counters, so the cost depends only on the agents. */
  counts(limit: number): Promise<readonly AgentCounts[]>;
  /** All standing orders, by name. */
  orders(): Promise<readonly StandingOrder[]>;
  /**
   * Changes a standing order, and adds an act to the audit. Resolves to `false` and stores nothing if the order has changed, or the maximum
   * number of orders is reached.
   */
  change(change: OperatorChange): Promise<boolean>;
  /** Acts in the audit, newest first. */
  acts(query: ActQuery): Promise<readonly StoredAct[]>;
}

/** Checks a change before anything is stored, and rounds its time up to whole milliseconds. Throws a `TypeError` for a malformed change. */
export function readChange({ order, act }: OperatorChange): OperatorChange {
  if (order !== undefined) {
    checkName("The name of an order", order.name);
    if (order.value !== null) checkJson("The value of an order", order.value);
  }
  if (act !== undefined) checkAct(act);
  return {
    ...(order !== undefined && { order }),
    ...(act !== undefined && { act: { ...act, time: Math.ceil(act.time) } }),
  };
}

/** Throws a `TypeError` for a malformed act. */
export function checkAct({ subject, json, time }: AuditedAct): void {
  checkName("The subject of an act", subject);
  checkJson("An act", json);
  if (!Number.isSafeInteger(Math.ceil(time))) throw new TypeError("The time of an act must be in milliseconds");
}

function checkName(what: string, text: string): void {
  const bytes = typeof text === "string" ? utf8Length(text) : 0;
  if (bytes > 0 && bytes <= operatorBounds.name) return;
  throw new TypeError(`${what} must take 1 to ${operatorBounds.name} bytes; got ${bytes}`);
}

function checkJson(what: string, text: string): void {
  const isText = typeof text === "string" && wellFormed(text) === text;
  if (!isText || utf8Length(text) > operatorBounds.value) {
    throw new TypeError(`${what} must be JSON text of at most ${operatorBounds.value} bytes`);
  }
  try {
    JSON.parse(text);
  } catch (cause) {
    throw new TypeError(`${what} must be JSON text`, { cause });
  }
}

/** The `value` of an order. */
export interface OrderText {
  /** The operator who gave the order. Absent: unknown. */
  readonly by?: string;
  /** The operator's reason. Absent: no reason was given. */
  readonly reason?: string;
  /** When the order was given, in milliseconds since the Unix epoch. */
  readonly time: number;
}

/** Names of the orders that servers obey. */
export const orderNames: {
  /** The order that no process begins or resumes a turn of an agent. */
  readonly pause: (agent: string) => string;
  /** The order that a process begins and resumes no turn. */
  readonly drain: (node: string) => string;
} = { pause: (agent) => `pause ${agent}`, drain: (node) => `drain ${node}` };
