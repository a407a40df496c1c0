import {
  operatorBounds,
  readChange,
  type ActQuery,
  type AgentCounts,
  type AuditedAct,
  type OperatorChange,
  type OperatorPage,
  type OperatorQuery,
  type StandingOrder,
  type StoredAct,
  type StoreOperators,
} from "../port.ts";
import { delegationFeature } from "../transition.ts";
import { newestFirst, oldestFirst } from "./lists.ts";
import type { MemoryTables } from "./tables.ts";

/** The data and orders of operators, in memory. */
export class MemoryOperators implements StoreOperators {
  readonly #tables: () => MemoryTables;

  constructor(tables: () => MemoryTables) {
    this.#tables = tables;
  }

  async tasks(query: OperatorQuery): Promise<OperatorPage> {
    const { agent, owner, order, limit } = query;
    const agents = [...this.#tables().agents].flatMap(([name, rows]) => ((agent ?? name) === name ? [rows] : []));
    const indexes = agents.flatMap(({ index, owners }) => {
      const found = owner === undefined ? index : owners.get(owner)?.index;
      return found === undefined ? [] : [found];
    });
    const found = indexes.flatMap((index) => index.stretch(query)).sort(order === "newest" ? newestFirst : oldestFirst);
    const page = found.slice(0, limit);
    const heads = page.map((task) => {
      const delegates = this.#tables().features.of(task, delegationFeature).length > 0;
      return delegates ? { ...task.head, delegates } : task.head;
    });
    const last = page.at(-1);
    if (found.length <= limit || last === undefined) return { heads };
    return { heads, next: { statusTime: last.statusTime, number: last.number } };
  }

  async counts(limit: number): Promise<readonly AgentCounts[]> {
    return [...this.#tables().agents]
      .map(([agent, { index }]): AgentCounts => ({ agent, states: index.counts() }))
      .sort((a, b) => compare(a.agent, b.agent))
      .slice(0, limit);
  }

  async orders(): Promise<readonly StandingOrder[]> {
    const { orders } = this.#tables();
    return [...orders].map(([name, value]) => ({ name, value })).sort((a, b) => compare(a.name, b.name));
  }

  async change(change: OperatorChange): Promise<boolean> {
    const { order, act } = readChange(change);
    const { orders } = this.#tables();
    if (order !== undefined) {
      const before = orders.get(order.name) ?? null;
      if (before !== order.if) return false;
      if (before === null && order.value !== null && orders.size >= operatorBounds.orders) return false;
      if (order.value === null) orders.delete(order.name);
      else orders.set(order.name, order.value);
    }
    if (act !== undefined) addAct(this.#tables(), act);
    return true;
  }

  async acts({ subject, before = Infinity, limit }: ActQuery): Promise<readonly StoredAct[]> {
    const { acts } = this.#tables();
    return acts
      .filter((act) => act.number < before && (subject ?? act.subject) === act.subject)
      .slice(-limit)
      .reverse();
  }
}

/** Adds an act to the audit, which keeps the newest acts. */
export function addAct({ acts }: MemoryTables, { subject, json, time }: AuditedAct): void {
  const number = (acts.at(-1)?.number ?? 0) + 1;
  acts.push(Object.freeze({ number, subject, json, time }));
  if (acts.length > operatorBounds.acts) acts.shift();
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
