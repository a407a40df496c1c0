import { A2AError, type TaskState } from "@parley/a2a/internal/model/index";
import { unavailable } from "./bounds.ts";
import {
  defaultPageBytes,
  type KnownContext,
  type KnownReply,
  type ListedTask,
  type ListQuery,
  type Owner,
  type Store,
  type TaskHead,
  type Upkeep,
} from "./port.ts";

/* Deletion and export of all data of an owner, over any store with `upkeep`. */

/** The deleted data of an owner. */
export interface Erasure {
  /** Deleted tasks. */
  readonly tasks: number;
  /** Number of tasks that were canceled first. */
  readonly canceled: number;
}

/** Options of `eraseOwner()`. */
export interface EraseOptions {
  /** Cancels a task that is not over. Default: in the store, which stops its run in any process. */
  readonly cancel?: (head: TaskHead) => Promise<boolean>;
  /** Called after tasks were canceled, before they are deleted. */
  readonly onCanceled?: () => Promise<void>;
  /** Called after each step, with the number of deleted tasks so far. */
  readonly onProgress?: (tasks: number) => void;
}

/** Maximum tasks, or rows of a kind, in one transaction. */
const limit = 100;
/** Maximum rounds for an owner that keeps creating tasks. */
const maxRounds = 20;
/** Milliseconds between two rounds, because a server's sweep may have locked the remaining rows. */
const roundPause = 100;

const active: readonly TaskState[] = [
  "TASK_STATE_SUBMITTED",
  "TASK_STATE_WORKING",
  "TASK_STATE_INPUT_REQUIRED",
  "TASK_STATE_AUTH_REQUIRED",
];

/** The `upkeep` of a store. Throws if the store has no `upkeep`. */
export function upkeepOf({ upkeep }: Store): Upkeep {
  if (upkeep !== undefined) return upkeep;
  throw new A2AError(
    "UnsupportedOperation",
    "This store cannot delete or export the data of an owner: it has no `upkeep`",
  );
}

/** The error of a deletion that does not end. */
export function stillCreatesTasks(): A2AError {
  return unavailable("The owner keeps creating tasks: revoke its access first");
}

/** All items of a paged list. `read` gets the last item of the previous page. */
async function* paged<Item>(read: (last?: Item) => Promise<readonly Item[]>): AsyncGenerator<Item, void, void> {
  for (let page = await read(); page.length > 0; page = await read(page.at(-1))) yield* page;
}

/** The agents that have data of an owner, and the given agents, without duplicates. */
export async function agentsOf(upkeep: Upkeep, owner: string, agents: readonly string[]): Promise<readonly string[]> {
  const all = new Set(agents);
  const owners = paged<Owner>((after) => upkeep.owners({ owner, limit, ...(after && { after }) }));
  for await (const { agent } of owners) all.add(agent);
  return [...all];
}

export async function erase(store: Store, { agent, owner }: Owner, options: EraseOptions = {}): Promise<Erasure> {
  const upkeep = upkeepOf(store);
  const { cancel = (head) => cancelInStore(store, head), onCanceled, onProgress } = options;
  const of = { agent, owner };
  let [tasks, canceled] = [0, 0];
  for (let round = 0; round < maxRounds; round += 1) {
    if (round > 0) await new Promise((resolve) => setTimeout(resolve, roundPause));
    for (let found = await upkeep.find({ ...of, states: active }, limit); found.length > 0;) {
      for (const head of found) if (await cancel(head)) canceled += 1;
      const again = await upkeep.find({ ...of, states: active }, limit);
      // If no task could be canceled, all tasks changed concurrently. The next round retries.
      if (again.length === found.length && again.every(({ seq }, at) => seq === found[at]?.seq)) break;
      found = again;
    }
    if (canceled > 0 && round === 0) await onCanceled?.();
    for (let more = true; more;) {
      const removed = await upkeep.remove(of, limit);
      tasks += removed.deleted;
      onProgress?.(tasks);
      more = removed.more && removed.deleted > 0;
    }
    for (let more = true; more;) {
      const forgotten = await upkeep.forget(of, limit);
      if (!forgotten.more) return { tasks, canceled };
      more = (await upkeep.find(of, 1)).length === 0;
    }
  }
  throw stillCreatesTasks();
}

/** Ends a task, whichever process runs it. That process then finds that the fence was raised. */
async function cancelInStore(store: Store, { task, contextId, statusTime, run }: TaskHead): Promise<boolean> {
  const state = "TASK_STATE_CANCELED";
  const time = Math.max(statusTime, Math.floor(store.clock?.now() ?? Date.now()));
  const status = { state, timestamp: new Date(time).toISOString() };
  const { turn = 1, attempt = 1 } = run ?? {};
  const json = JSON.stringify({ taskId: task.taskId, contextId, status });
  const [outcome] = await store.append([
    {
      task,
      records: [{ kind: "statusUpdate", json, time, actor: "system", turn, attempt, state }],
      effects: [
        { effect: "run", run: null },
        { effect: "checkpoint", value: null },
        { effect: "lease", op: "revoke" },
      ],
    },
  ]);
  return outcome?.ok === true;
}

/** Maximum tasks of a page, and their approximate bytes. A page is held in memory. */
const taskPage = { limit: 50, bytes: defaultPageBytes, artifacts: true } as const;

export async function* exported(
  store: Store,
  owner: string,
  agents: readonly string[],
): AsyncGenerator<string, void, void> {
  const upkeep = upkeepOf(store);
  const started = Math.floor(store.clock?.now() ?? Date.now());
  const counts = { tasks: 0, contexts: 0, messages: 0 };
  yield lineOf({ type: "export", version: 1, owner, agents, at: new Date(started).toISOString() });
  for (const agent of agents) {
    const of = { agent, owner };
    for await (const { contextId, state } of contextsOf(upkeep, of)) {
      counts.contexts += 1;
      yield lineWith({ type: "context", agent, contextId }, "state", state);
      for await (const { time, json } of repliesOf(upkeep, { ...of, contextId })) {
        counts.messages += 1;
        yield lineWith({ type: "message", agent, contextId, at: new Date(time).toISOString() }, "message", json);
      }
    }
    // Newest status first. The second query finds tasks that the first missed, because their status changed during the export.
    for (const query of [{}, { since: started }]) {
      for await (const task of tasksOf(store, of, query)) {
        if (!("since" in query)) counts.tasks += 1;
        yield `{"type":"task","agent":${JSON.stringify(agent)},"task":`;
        yield* textOf(task);
        yield "}\n";
      }
    }
  }
  yield lineOf({ type: "end", ...counts });
}

function lineOf(line: object): string {
  return `${JSON.stringify(line)}\n`;
}

/** A line with one more member, whose value is JSON text. */
function lineWith(line: object, name: string, json: string | undefined): string {
  return json === undefined ? lineOf(line) : `${JSON.stringify(line).slice(0, -1)},"${name}":${json}}\n`;
}

function* textOf({ pieces, json, task }: ListedTask): Generator<string, void, void> {
  if (pieces !== undefined) yield* pieces;
  else yield json ?? JSON.stringify(task);
}

function contextsOf(upkeep: Upkeep, owner: Owner) {
  return paged<KnownContext>((last) => upkeep.contexts(owner, { limit, ...(last && { after: last.contextId }) }));
}

function repliesOf(upkeep: Upkeep, context: Owner & { readonly contextId: string }) {
  return paged<KnownReply>((last) => upkeep.replies(context, { limit, ...(last && { after: last.place }) }));
}

async function* tasksOf(store: Store, owner: Owner, query: Pick<ListQuery, "since">) {
  for (let after: ListQuery["after"]; ;) {
    const { tasks, next } = await store.list(owner, { ...taskPage, ...query, ...(after && { after }) });
    yield* tasks;
    if (next === undefined) return;
    after = next;
  }
}
