import { utf8Length } from "@parley/a2a/internal/base/index";
import {
  defaultPageBytes,
  type ContextKey,
  type KnownContext,
  type KnownReply,
  type Owner,
  type OwnerQuery,
  type Removed,
  type RemovedTasks,
  type TaskHead,
  type TaskSelection,
  type Upkeep,
} from "../port.ts";

import { oldestFirst } from "./lists.ts";
import type { StoredContext, StoredTask } from "./rows.ts";
import type { MemoryTables } from "./tables.ts";

/** Deletion and export for operators, in memory. */
export class MemoryUpkeep implements Upkeep {
  readonly #tables: MemoryTables;

  constructor(tables: MemoryTables) {
    this.#tables = tables;
  }

  async owners({ agent, owner, after, limit }: OwnerQuery): Promise<readonly Owner[]> {
    const all = [...this.#tables.agents].flatMap(([name, { owners }]) =>
      [...owners.keys()].map((each): Owner => ({ agent: name, owner: each })),
    );
    return all
      .filter((each) => (agent ?? each.agent) === each.agent && (owner ?? each.owner) === each.owner)
      .filter((each) => after === undefined || byName(each, after) > 0)
      .sort(byName)
      .slice(0, limit);
  }

  async count(selection: TaskSelection): Promise<number> {
    return this.#select(selection, Infinity, isFree).length;
  }

  async find(selection: TaskSelection, limit: number): Promise<readonly TaskHead[]> {
    return this.#select(selection, limit, () => true).map(({ head }) => head);
  }

  async remove(selection: TaskSelection, limit: number): Promise<RemovedTasks> {
    const found = this.#select(selection, limit + 1, isFree);
    for (const task of found.slice(0, limit)) this.#tables.delete(task);
    const idle = this.#idle(selection).slice(0, limit + 1);
    for (const context of idle.slice(0, limit)) this.#tables.drop(context);
    return {
      deleted: Math.min(found.length, limit),
      conversations: Math.min(idle.length, limit),
      more: found.length > limit || idle.length > limit,
    };
  }

  async contexts(
    owner: Owner,
    { after, limit }: { readonly after?: string; readonly limit: number },
  ): Promise<readonly KnownContext[]> {
    return [...(this.#tables.owner(owner)?.contexts.values() ?? [])]
      .filter(({ id }) => after === undefined || id > after)
      .sort((a, b) => compare(a.id, b.id))
      .slice(0, limit)
      .map(({ id, state }) => ({ contextId: id, ...(state !== undefined && { state }) }));
  }

  async replies(
    { contextId, ...owner }: ContextKey,
    { after = 0, limit }: { readonly after?: number; readonly limit: number },
  ): Promise<readonly KnownReply[]> {
    const messages = this.#tables.owner(owner)?.contexts.get(contextId)?.messages.after({ place: after }, Infinity);
    const found = (messages ?? []).filter(({ task }) => task === undefined).slice(0, limit);
    let bytes = 0;
    const page = found.filter(({ event }, at) => (bytes += utf8Length(event.json)) <= defaultPageBytes || at === 0);
    return page.map(({ place, event }) => ({ place, time: event.time, json: event.json }));
  }

  async forget(owner: Owner, limit: number): Promise<Removed> {
    const contexts = [...(this.#tables.owner(owner)?.contexts.values() ?? [])];
    if (contexts.some(({ tasks }) => tasks > 0)) return { deleted: 0, more: true };
    for (const context of contexts.slice(0, limit)) this.#tables.drop(context);
    return { deleted: Math.min(contexts.length, limit), more: contexts.length > limit };
  }

  async scrub(): Promise<void> {
    // Memory keeps no remains of deleted data.
  }

  /** The conversations without a task, the least recently used first. */
  #idle({ agent, owner, states, before = Infinity }: TaskSelection): readonly StoredContext[] {
    if (states?.includes("TASK_STATE_COMPLETED") === false) return [];
    return this.#tables.idle
      .after(undefined, Infinity)
      .filter(
        ({ touched, keys, owner: own }) =>
          touched < before &&
          (agent ?? own.agent.name) === own.agent.name &&
          (owner ?? own.name) === own.name &&
          keys.every(({ until }) => until === Infinity),
      );
  }

  /** The tasks with the oldest status, in the order of time. */
  #select(
    { agent, owner, states, before = Infinity }: TaskSelection,
    limit: number,
    fits: (task: StoredTask) => boolean,
  ): readonly StoredTask[] {
    const agents = [...this.#tables.agents].flatMap(([name, rows]) => ((agent ?? name) === name ? [rows] : []));
    const indexes = agents.flatMap(({ index, owners }) => {
      const found = owner === undefined ? index : owners.get(owner)?.index;
      return found === undefined ? [] : [found];
    });
    return indexes
      .flatMap((index) => index.oldest(states, before, limit, fits))
      .sort(oldestFirst)
      .slice(0, limit);
  }
}

/** Whether no process executes the task. */
function isFree({ due }: StoredTask): boolean {
  return due === undefined;
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function byName(a: Owner, b: Owner): number {
  return compare(a.agent, b.agent) || compare(a.owner, b.owner);
}
