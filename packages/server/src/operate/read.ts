import { defined } from "@parley/a2a/internal/base/defined";
import { utf8Length, type Clock } from "@parley/a2a/internal/base/index";
import { invalidParams, isTerminal, type LogRecord, type TaskState } from "@parley/a2a/internal/model/index";
import type { ClosedDelegation, OpenDelegation } from "@parley/a2a/internal/protocol/index";
import { safeSentences } from "../engine/run/phase.ts";
import { isQueued, queueKey, takeoverJson } from "../engine/run/task-rows.ts";
import { waitingRun } from "../engine/run/turn-input.ts";
import { notedAgents, type OperatingHost } from "../engine/shared/operating.ts";
import { inTaskFeature } from "../intask/row.ts";
import { pushOperator } from "../push/operator.ts";
import type { PushEntry } from "../push/port.ts";
import {
  delegatedFeature,
  delegationFeature,
  orderNames,
  queueFeature,
  stepFeature,
  suspendedFeature,
  takeoverFeature,
  waitFeature,
  type ClaimPosition,
  type OrderText,
  type StandingOrder,
  type Store,
  type StoreOperators,
  type TaskHead,
} from "../store/index.ts";
import { cursorOf, positionOf } from "./cursor.ts";
import { explain, iso, type Facts } from "./explain.ts";
import type {
  Counts,
  LogEntry,
  LogQuery,
  OperatedNode,
  OperatedTask,
  PausedAgent,
  ShownTask,
  TaskFilter,
  TaskList,
  TaskLog,
} from "./port.ts";
import { endedWaits, stepsOf } from "./steps.ts";
import { actOf, subjects, viewOf } from "./views.ts";

/* Queries of operators. */

/** Dependencies of the queries. */
export interface ReadDeps {
  readonly store: Store;
  readonly operators: StoreOperators;
  readonly clock: Pick<Clock, "now">;
  readonly host: OperatingHost;
}

/** Default and maximum number of tasks of a page. */
const [defaultLimit, maxLimit] = [50, 500];
/** Maximum number of counted agents, and of runs per read. */
const [maxAgents, runsPerPage] = [1_000, 500];
/** Maximum counted runs and rows of the queue. */
const maxCounted = 10_000;
/** Maximum counted tasks ahead of another in the queue. */
const maxAhead = 1_000;
/** Number of tasks that are read by their id at the same time. */
const headsAtOnce = 16;
const ever = Number.MAX_SAFE_INTEGER;
const shownRecords = 50;
/** Default number of records on a page of a log, and maximum bytes of their events. */
const [defaultRecords, pageBytes] = [1_000, 4 << 20];

export async function listTasks(deps: ReadDeps, filter: TaskFilter): Promise<TaskList> {
  const { limit = defaultLimit, cursor, node, suspended, taskId, ...rest } = filter;
  if (!Number.isInteger(limit) || limit < 1 || limit > maxLimit) {
    throw invalidParams([{ field: "limit", description: `must be a whole number from 1 to ${maxLimit}` }]);
  }
  const { order = "newest", agent, owner, states, since, before } = rest;
  const key = JSON.stringify([agent, owner, states, since, before, order, node, suspended]);
  const position = cursor === undefined ? undefined : positionOf(key, cursor);
  if (taskId !== undefined)
    return { tasks: (await headsOf(deps, taskId, filter)).slice(0, limit).map((head) => viewOf(head)) };
  if (node !== undefined || suspended === true) return listRuns(deps, filter, { key, position, limit });
  const [statusTime, number] = position ?? [];
  const after = typeof statusTime === "number" && typeof number === "number" ? { statusTime, number } : undefined;
  const page = await deps.operators.tasks({ order, limit, ...defined({ agent, owner, states, since, before, after }) });
  const { next } = page;
  const tasks = page.heads.map((head) => viewOf(head));
  return next === undefined ? { tasks } : { tasks, next: cursorOf(key, [next.statusTime, next.number]) };
}

/** The tasks with an id, which may be several, because ids are unique only within an agent. */
async function headsOf(deps: ReadDeps, taskId: string, filter: TaskFilter): Promise<readonly TaskHead[]> {
  const agents = filter.agent === undefined ? await agentsOf(deps) : [filter.agent];
  const heads: (TaskHead | undefined)[] = [];
  for (let at = 0; at < agents.length; at += headsAtOnce) {
    const some = agents.slice(at, at + headsAtOnce);
    heads.push(...(await Promise.all(some.map((agent) => deps.store.head({ agent }, taskId)))));
  }
  return heads.filter((head) => head !== undefined).filter(fitting(filter));
}

/** Whether a task matches a filter, apart from its agent. */
function fitting({ owner, states, node, suspended, since = -Infinity, before = Infinity }: TaskFilter) {
  return ({ task, state, statusTime, holder, run }: TaskHead): boolean =>
    (owner === undefined || owner === task.owner) &&
    (states === undefined || states.includes(state)) &&
    (node === undefined || (run !== undefined && node === holder)) &&
    (suspended !== true || run?.suspended === true) &&
    statusTime >= since &&
    statusTime < before;
}

interface RunsPage {
  readonly key: string;
  readonly position: readonly (number | null)[] | undefined;
  readonly limit: number;
}

/** Lists runs, which are few and have their own index. Reads runs until a page is full. */
async function listRuns(deps: ReadDeps, filter: TaskFilter, { key, position, limit }: RunsPage): Promise<TaskList> {
  const { node, agent } = filter;
  const agents = agent === undefined ? await agentsOf(deps) : [agent];
  const [leaseUntil, number] = position ?? [];
  let after: ClaimPosition | undefined =
    typeof number === "number" ? { number, ...(typeof leaseUntil === "number" && { leaseUntil }) } : undefined;
  const holders = node === undefined ? undefined : [node];
  const read = (most: number) =>
    deps.store.claimable({ now: ever, agents, limit: most, ...defined({ holders, after }) });
  const fits = fitting(filter);
  const tasks: OperatedTask[] = [];
  for (;;) {
    let page = await read(runsPerPage);
    const places = page.heads.flatMap((head, at) => (fits(head) ? [at + 1] : []));
    const last = places[limit - tasks.length - 1];
    // A position is known only after the last task of a page, so read a page that ends with this task.
    if (last !== undefined && last < page.heads.length) page = await read(last);
    tasks.push(...page.heads.filter(fits).map((head) => viewOf(head)));
    after = page.next;
    if (after === undefined) return { tasks };
    if (tasks.length >= limit) return { tasks, next: cursorOf(key, [after.leaseUntil ?? null, after.number]) };
  }
}

async function agentsOf({ operators }: ReadDeps): Promise<readonly string[]> {
  return (await operators.counts(maxAgents)).map(({ agent }) => agent);
}

export async function factsOf(deps: ReadDeps, head: TaskHead): Promise<Facts> {
  const { store, operators, host, clock } = deps;
  const { task } = head;
  const now = clock.now();
  const isOver = isTerminal(head.state);
  const rowsOf = (feature: string, asked: boolean) =>
    asked ? store.features(task, task.taskId, feature) : Promise.resolve([]);
  const [waits, steps, delegations, requests, [at], end, orders, place, served] = await Promise.all([
    rowsOf(waitFeature, waitingRun(head) !== undefined),
    rowsOf(stepFeature, true),
    rowsOf(delegationFeature, !isOver),
    rowsOf(inTaskFeature, !isOver),
    rowsOf(suspendedFeature, head.run?.suspended === true),
    endOf(deps, head),
    operators.orders(),
    isQueued(head) ? aheadOf(deps, head) : { ahead: 0, more: false },
    isServed(deps, task.agent),
  ]);
  const pause = orderText(orders, orderNames.pause(task.agent));
  const suspended = at && Number(at.value);
  return { head, waits, steps, delegations, requests, suspended, end, pause, served, host, now, ...place };
}

/** Why a task failed, or who canceled it. Compares the status message with the engine's messages, and returns none of its text. */
async function endOf({ store, operators }: ReadDeps, { task, state }: TaskHead): Promise<Facts["end"]> {
  if (state !== "TASK_STATE_FAILED" && state !== "TASK_STATE_CANCELED") return {};
  const [snapshot, acts] = await Promise.all([
    store.load(task, task.taskId, { history: 0, artifacts: false }),
    operators.acts({ subject: subjects.task(task.agent, task.taskId), limit: 20 }),
  ]);
  const { messageId = "", parts = [] } = snapshot?.task.status.message ?? {};
  const isOwn = messageId.startsWith(`${task.taskId}-`) && messageId.endsWith("-system");
  const [known] = Object.entries(safeSentences).filter(([, sentence]) => isOwn && sentence === parts[0]?.text);
  const cause = known?.[0] as keyof typeof safeSentences | undefined;
  if (state === "TASK_STATE_FAILED") return { cause: cause ?? (isOwn ? "delegation" : "reported") };
  const act = acts.map(actOf).find((each) => each.act === "cancel" && each.outcome === "done");
  return act === undefined ? { cause } : { cause: "operator", act };
}

/** Whether a node that is not silent runs an agent. `undefined`: unknown. */
async function isServed(deps: ReadDeps, agent: string): Promise<boolean | undefined> {
  if (deps.host.agents()?.includes(agent) !== false) return true;
  const { agents, isWhole } = await servedAgents(deps);
  if (agents.includes(agent)) return true;
  return deps.store.nodes !== undefined && isWhole ? false : undefined;
}

/** The agents of all nodes that are not silent. `isWhole`: whether the agents of each known node are known. */
export async function servedAgents({
  store,
  host,
  clock,
}: ReadDeps): Promise<{ readonly agents: readonly string[]; readonly isWhole: boolean }> {
  const others = [...host.nodes()].flatMap(([name, silentMs]) =>
    name === host.node || silentMs >= host.silence ? [] : [name],
  );
  const noted = await notedAgents(store, others, clock.now());
  const agents = new Set([...(host.agents() ?? []), ...[...noted.values()].flat()]);
  return { agents: [...agents].sort(), isWhole: noted.size === others.length };
}

function orderText(orders: readonly StandingOrder[], name: string): OrderText | undefined {
  const found = orders.find((order) => order.name === name);
  return found && (JSON.parse(found.value) as OrderText);
}

async function aheadOf({ store }: ReadDeps, { task }: TaskHead): Promise<Pick<Facts, "ahead" | "more">> {
  const own = (await store.features(task, task.taskId, queueFeature)).find(({ key }) => key === queueKey);
  if (own?.due === undefined) return { ahead: 0, more: false };
  const query = { feature: queueFeature, agents: [task.agent], now: own.due, limit: maxAhead };
  const rows = await store.dueFeatures(query);
  const at = rows.findIndex((row) => row.task.taskId === task.taskId);
  return { ahead: at < 0 ? rows.length : at, more: at < 0 && rows.length === maxAhead };
}

export async function showTask(deps: ReadDeps, agent: string, taskId: string): Promise<ShownTask | undefined> {
  const { store, operators } = deps;
  const head = await store.head({ agent }, taskId);
  if (head === undefined) return undefined;
  const facts = await factsOf(deps, head);
  const waits = explain(facts);
  const turn = await turnOf(store, head);
  const rowsOf = (feature: string) => store.features(head.task, taskId, feature);
  const [webhooks, takeovers, open, closed, page, acts] = await Promise.all([
    pushOperator(store).show(agent, taskId),
    rowsOf(takeoverFeature),
    rowsOf(delegationFeature),
    rowsOf(delegatedFeature),
    store.read(head.task, taskId, { after: Math.max(head.firstSeq - 1, head.seq - shownRecords), limit: shownRecords }),
    operators.acts({ subject: subjects.task(agent, taskId), limit: 20 }),
  ]);
  return {
    task: viewOf(head, facts.delegations.length > 0),
    why: waits[0],
    waits,
    steps: stepsOf(facts.steps, turn).map(({ scope, begun, ended, ...step }) => ({
      ...step,
      scope: scope === "task" ? "task" : "turn",
      ...defined({ begun: isoOf(begun), ended: isoOf(ended) }),
    })),
    waited: endedWaits(facts.steps, turn).map(({ name, begun, ended }) => ({
      name,
      begun: iso(begun),
      ended: iso(ended),
    })),
    takeovers: takeovers
      .map(({ value }) => takeoverJson.read(value))
      .sort((a, b) => a.time - b.time)
      .map((each) => ({ ...each, time: iso(each.time) })),
    delegations: [
      ...open.map(({ value }) => delegationOf(JSON.parse(value) as OpenDelegation, "open")),
      ...closed.map(({ value }) => delegationOf(JSON.parse(value) as ClosedDelegation, "done")),
    ].sort((a, b) => a.number - b.number),
    webhooks: webhooks.map(webhookOf),
    log: (page?.records ?? []).map(entryOf),
    acts: acts.map(actOf),
  };
}

const isoOf = (time: number | undefined): string | undefined => (time === undefined ? undefined : iso(time));

function delegationOf(
  row: OpenDelegation | ClosedDelegation,
  state: "open" | "done",
): ShownTask["delegations"][number] {
  const { number, agent } = row;
  const taskId = "result" in row ? row.result?.task?.id : "taskId" in row ? row.taskId : undefined;
  return { number, agent, state, ...defined({ taskId }) };
}

function webhookOf(entry: PushEntry): ShownTask["webhooks"][number] {
  const { configId: id, url, state, delivered, cursor: seq, attempts, due, problem, refused } = entry;
  const next = state === "due" ? isoOf(due) : undefined;
  const known = defined({ next, problem: problem?.reason, problemTime: isoOf(problem?.at) });
  const all = refused.map((one) => ({ seq: one.seq, time: iso(one.at), problem: one.reason }));
  return { id, url, state, delivered, seq, attempts, ...known, refused: all };
}

function entryOf({ seq, kind, time, actor, turn, attempt, state, json, trace }: LogRecord): LogEntry {
  const artifactId = kind === "artifactUpdate" ? artifactIdIn(json) : undefined;
  const bytes = utf8Length(json);
  return { seq, kind, time: iso(time), actor, turn, attempt, bytes, ...defined({ state, artifactId, trace }) };
}

function artifactIdIn(json: string): string | undefined {
  const { artifact } = JSON.parse(json) as { readonly artifact?: { readonly artifactId?: string } };
  return artifact?.artifactId;
}

export async function readLog(
  { store }: Pick<ReadDeps, "store">,
  agent: string,
  taskId: string,
  { after = 0, limit = defaultRecords }: LogQuery,
): Promise<TaskLog | undefined> {
  const page = await store.read({ agent }, taskId, { after, limit, bytes: pageBytes });
  if (page === undefined) return undefined;
  const last = page.records.at(-1)?.seq ?? page.head.seq;
  const entries = page.records.map(entryOf);
  return { task: viewOf(page.head), entries, ...(last < page.head.seq && { next: last }) };
}

/** The number of the turn that works or waits, or else of the last turn. */
export async function turnOf(store: Pick<Store, "read">, head: TaskHead): Promise<number> {
  const run = head.run ?? waitingRun(head);
  if (run !== undefined) return run.turn;
  const page = await store.read(head.task, head.task.taskId, { after: head.seq - 1, limit: 1 });
  return page?.records[0]?.turn ?? 1;
}

export async function countTasks(deps: ReadDeps): Promise<Counts> {
  const { operators, store, clock } = deps;
  const [agents, orders] = await Promise.all([operators.counts(maxAgents), operators.orders()]);
  const states: Partial<Record<TaskState, number>> = {};
  for (const each of agents) {
    for (const [state, tasks] of Object.entries(each.states)) {
      states[state as TaskState] = (states[state as TaskState] ?? 0) + tasks;
    }
  }
  const queued = await store.dueFeatures({ feature: queueFeature, now: ever, limit: maxCounted + 1 });
  const [first] = queued;
  const head = first && (await store.head(first.task, first.task.taskId));
  const runs = { count: 0, suspended: 0, free: 0, more: false };
  for await (const heads of runPages(deps)) {
    for (const { run, holder } of heads) {
      runs.count += 1;
      if (run?.suspended === true) runs.suspended += 1;
      else if (holder === undefined) runs.free += 1;
    }
    if (runs.count >= maxCounted) {
      runs.more = true;
      break;
    }
  }
  return {
    states,
    agents: agents.map((each) => ({
      ...each,
      paused: orders.some(({ name }) => name === orderNames.pause(each.agent)),
    })),
    queue: {
      count: Math.min(queued.length, maxCounted),
      more: queued.length > maxCounted,
      oldestMs: head === undefined ? 0 : Math.max(0, clock.now() - head.statusTime),
    },
    runs,
  };
}

async function* runPages(deps: ReadDeps): AsyncGenerator<readonly TaskHead[], void, void> {
  const agents = await agentsOf(deps);
  for (let after: ClaimPosition | undefined; ;) {
    const page = await deps.store.claimable({ now: ever, agents, limit: runsPerPage, ...defined({ after }) });
    yield page.heads;
    if (page.next === undefined) return;
    after = page.next;
  }
}

/** All nodes that the store counts, that hold runs, or that have an order to drain. */
export async function nodesOf(deps: ReadDeps): Promise<readonly OperatedNode[]> {
  const { operators, host } = deps;
  const known = host.nodes();
  const held = new Map<string, number>();
  let counted = 0;
  for await (const heads of runPages(deps)) {
    for (const { holder } of heads) if (holder !== undefined) held.set(holder, (held.get(holder) ?? 0) + 1);
    counted += heads.length;
    if (counted >= maxCounted) break;
  }
  const drain = orderNames.drain("");
  const orders = (await operators.orders()).filter(({ name }) => name.startsWith(drain));
  const drained = new Set(orders.map(({ name }) => name.slice(drain.length)));
  const names = [...new Set([host.node, ...known.keys(), ...held.keys(), ...drained])].sort();
  const noted = await notedAgents(deps.store, names, deps.clock.now());
  return names.map((name) => {
    const [self, silentMs, runs = 0] = [name === host.node, known.get(name), held.get(name)];
    const isGone = known.size > 0 && !self && runs === 0 && (silentMs ?? Infinity) >= host.silence;
    const agents = self ? host.agents() : noted.get(name);
    return {
      name,
      self,
      draining: drained.has(name),
      runs,
      ...defined({ silentMs: silentMs && Math.max(0, Math.round(silentMs)), gone: isGone || undefined, agents }),
    };
  });
}

export async function pausedAgents({ operators }: Pick<ReadDeps, "operators">): Promise<readonly PausedAgent[]> {
  const prefix = orderNames.pause("");
  const orders = (await operators.orders()).filter(({ name }) => name.startsWith(prefix));
  return orders.map(({ name, value }) => pausedAgent(name.slice(prefix.length), JSON.parse(value) as OrderText));
}

export function pausedAgent(agent: string, { by, reason, time }: OrderText): PausedAgent {
  return { agent, since: iso(time), ...defined({ by, reason }) };
}
