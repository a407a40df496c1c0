import { jsonHash } from "@parley/a2a/internal/model/index";
import type { Principal } from "@parley/a2a/internal/protocol/index";
import type { AppendOutcome, Store, TaskAppend, TaskEffect, TaskHead } from "../../store/index.ts";

/** Functions through which operators change the tasks of an engine. */
export interface OperatingHost {
  /** The name of this process in leases. */
  readonly node: string;
  /** Stores a change of a task. `by`: who does it, for the audit. */
  append(item: TaskAppend, by?: Principal): Promise<AppendOutcome>;
  /** Cancels a task, whichever process runs it. `false`: the task has changed since it was read. */
  cancel(head: TaskHead, options: CancelOptions): Promise<boolean>;
  /** Immediately starts the work that an operator's change has made due, in this process. Other processes notice the change by themselves. */
  nudge(): Promise<void>;
  /** The agents that this process runs. `undefined`: this process runs no agents, so it is not a node. */
  agents(): readonly string[] | undefined;
  /** How long each process on the store has been silent, in milliseconds, if the store counts processes. */
  nodes(): ReadonlyMap<string, number>;
  /** How long a process must be silent to count as dead, in milliseconds. */
  readonly silence: number;
}

export interface CancelOptions {
  /** Effects to store with the end of the task. */
  readonly effects: readonly TaskEffect[];
  /** Only if this is the last record of the task. Absent: any. */
  readonly seq?: number | undefined;
  /** Who cancels. */
  readonly by?: Principal | undefined;
}

/** How long a note about a process is valid, in milliseconds. */
export const notedFor = 120_000;
/** Maximum characters of a note. */
const maxNote = 1_024;

const noteKey = (node: string): string => `agents ${jsonHash(node)}`;

/** Stores which agents a process runs, for operators at other processes. Agents that do not fit into the note are left out. */
export async function noteAgents(
  { notes }: Store,
  node: string,
  agents: readonly string[],
  now: number,
): Promise<void> {
  const ascii = (char: string): string => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`;
  const value = JSON.stringify(agents).replaceAll(/[^ -~]/g, ascii);
  if (value.length <= maxNote) await notes?.write([{ key: noteKey(node), value, until: now + notedFor }], now);
}

/** The agents of each process that has stored a note. */
export async function notedAgents(
  { notes }: Store,
  nodes: readonly string[],
  now: number,
): Promise<ReadonlyMap<string, readonly string[]>> {
  const found = await notes?.read(nodes.slice(0, 1_000).map(noteKey), now);
  return new Map(
    nodes.flatMap((node) => {
      const value = found?.get(noteKey(node));
      return value === undefined ? [] : [[node, JSON.parse(value) as readonly string[]] as const];
    }),
  );
}
