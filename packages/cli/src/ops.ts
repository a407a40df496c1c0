import { defined } from "@parley/a2a/internal/base/defined";
import { jsonLine, line } from "@parley/a2a/internal/base/display";
import { A2AError, type TaskState } from "@parley/a2a/internal/model/index";
import {
  ageOf,
  nodeWord,
  ownerWord,
  stateWord,
  type Act,
  type ActResult,
  type Counts,
  type DrainedNode,
  type Explanation,
  type LogEntry,
  type OperatedNode,
  type OperatedTask,
  type Resumed,
  type ShownTask,
  type TaskList,
  type TaskLog,
} from "@parley/server/internal/operate/port";
import { CommandError } from "./errors.ts";
import { quote } from "./invocation.ts";
import type { Io } from "./io.ts";
import { opsUrl } from "./options.ts";
import { counted, print, stateName, table } from "./output/text.ts";
import { asking, type Ask, type OpsOptions } from "./stores.ts";

/* `parley ops`: what operators see and do, at the API of a server or directly on its database. */

interface OneOptions extends OpsOptions {
  readonly agent?: string;
}

interface ActOptions extends OneOptions {
  readonly seq?: number;
  readonly reason?: string;
}

interface ListOptions extends OpsOptions {
  readonly agent?: string;
  readonly owner?: string;
  readonly state?: readonly string[];
  readonly node?: string;
  readonly suspended?: boolean;
  readonly since?: string;
  readonly before?: string;
  readonly oldest?: boolean;
  readonly limit: number;
  readonly page?: string;
}

/** `parley ops list`. */
export async function list(io: Io, options: ListOptions): Promise<number> {
  const { agent, suspended, since, before, limit, page: cursor } = options;
  return asking(io, options, async (ask) => {
    const owner = options.owner && (await ownerNamed(ask, options.owner));
    const node = options.node && (await nodeNamed(ask, options.node));
    const order = options.oldest === true ? "oldest" : undefined;
    const filter = { agent, owner, states: options.state, node, suspended, since, before, order, limit, cursor };
    const page = await ask<TaskList>("listTasks", filter);
    const { tasks = [], next } = page ?? {};
    if (options.json === true) {
      io.stdout.write(`${jsonLine(page)}\n`);
      return 0;
    }
    if (tasks.length === 0) io.stderr.write("No tasks.\n");
    else io.stdout.write(table([["TASK", "STATE", "SINCE", "AGENT", "NODE", "OWNER"], ...tasks.map(rowOf)]));
    if (next !== undefined) io.stderr.write(`More with --page ${line(next)}\n`);
    return 0;
  });
}

function rowOf(task: OperatedTask): readonly string[] {
  const { taskId, state, statusTime, agent, node = "-", owner } = task;
  return [taskId, stateWord(stateName(state), task), statusTime, agent, nodeWord(node), ownerWord(owner)].map((cell) =>
    line(cell),
  );
}

/** The name of a node, which the user may have given in its short form. */
async function nodeNamed(ask: Ask, given: string): Promise<string> {
  if (!/\/\d+\/[^/]{4}$/.test(given)) return given;
  const { nodes = [] } = (await ask<{ readonly nodes: readonly OperatedNode[] }>("listNodes")) ?? {};
  return only(
    nodes.flatMap(({ name }) => (nodeWord(name) === given ? [name] : [])),
    "node",
    given,
  );
}

/** The stored name of an owner, which the user may have given as `subject` or `tenant/subject`. */
async function ownerNamed(ask: Ask, given: string): Promise<string> {
  if (given.startsWith("[")) return given;
  const splits = [...given.matchAll(/\//g)].map(({ index }) => [given.slice(0, index), given.slice(index + 1)]);
  const names = [given, ...[[null, given], ...splits].map((parts) => JSON.stringify(parts))];
  const found: string[] = [];
  for (const owner of names) {
    const page = await ask<TaskList>("listTasks", { owner, limit: 1 });
    if ((page?.tasks.length ?? 0) > 0) found.push(owner);
  }
  return only(found, "owner", given);
}

/** The only one of these names. The given name if the list is empty or contains it. */
function only(names: readonly string[], noun: string, given: string): string {
  const [first = given, ...more] = names;
  if (more.length === 0) return first;
  if (names.includes(given)) return given;
  const all = names.map((name) => `\n  ${quote(name)}`).join("");
  throw new CommandError(`${line(given)} is the short name of ${counted(names.length, noun)}. Pass one of${all}`);
}

/** `parley ops show`. */
export async function show(io: Io, taskId: string, options: OneOptions): Promise<number> {
  return asking(io, options, async (ask) => {
    const shown = await onOne<ShownTask>(io, ask, "showTask", ["show", taskId], options);
    print(io, options, shown, () => shownText(shown, io, options));
    return 0;
  });
}

type Words = readonly [command: string, taskId: string, ...more: string[]];
type Inputs = Readonly<Record<string, string | number | undefined>>;

/** Calls a route for a task of the named agent, else of the only agent that has it. `words`: the command, for the error. */
async function onOne<T extends object>(
  io: Io,
  ask: Ask,
  id: string,
  words: Words,
  options: ActOptions,
  inputs?: Inputs,
): Promise<T> {
  const { agent } = options;
  const [, taskId] = words;
  const holders = async () => ((await ask<TaskList>("listTasks", { taskId }))?.tasks ?? []).map((task) => task.agent);
  const found = agent === undefined ? await holders() : [agent];
  const answer = found.length === 1 ? await ask<T>(id, { agent: found[0], taskId, ...inputs }) : undefined;
  if (answer !== undefined && !("reason" in answer && answer.reason === "notFound")) return answer;
  const others = agent === undefined ? found : await holders();
  const who =
    agent === undefined ? `${others.length === 0 ? "no agent has" : "several agents have"} a` : `agent ${agent} has no`;
  const commands = others.map((other) => `\n  $ ${commandOf(io, words, { ...options, agent: other })}`).join("");
  throw new CommandError(`${line(`${who} task ${taskId}`)}${commands && `. Run${commands}`}`);
}

function commandOf({ program }: Io, words: Words, { agent = "", seq, reason, ...place }: ActOptions): string {
  const given = Object.entries(defined({ agent, seq, reason })).flatMap(([name, value]) => [`--${name}`, `${value}`]);
  const all = [...words, ...given].map((word) => quote(word)).join(" ");
  return line(`${program} ops ${all}${placeOf(place)}`, Number.POSITIVE_INFINITY);
}

interface LogOptions extends OneOptions {
  readonly after?: number;
  readonly limit: number;
}

/** `parley ops log`. */
export async function log(io: Io, taskId: string, { after, limit, ...options }: LogOptions): Promise<number> {
  return asking(io, options, async (ask) => {
    const page = await onOne<TaskLog>(io, ask, "readLog", ["log", taskId], options, { after, limit });
    print(io, options, page, () =>
      table([["ENTRY", "TIME", "ACTOR", "RUN", "KIND", "STATE"], ...page.entries.map(entryRow)]),
    );
    if (page.next !== undefined && options.json !== true)
      io.stderr.write(`More with --after ${line(`${page.next}`)}\n`);
    return 0;
  });
}

function entryRow({ seq, kind, time, actor, turn, attempt, state }: LogEntry): readonly string[] {
  const run = `turn ${turn}, attempt ${attempt}`;
  return [`${seq}`, time, actor, run, kind, state === undefined ? "" : stateName(state)].map((cell) => line(cell));
}

function shownText(shown: ShownTask, io: Io, options: OpsOptions): string {
  const { task, waits, steps, webhooks, log: entries, acts, takeovers, delegations } = shown;
  const { run, node = "-" } = task;
  const facts = [
    ["task", task.taskId],
    ["agent", task.agent],
    ["owner", ownerWord(task.owner)],
    ["context", task.contextId],
    ["state", `${stateWord(stateName(task.state), task)} since ${task.statusTime}`],
    ["records", `${task.seq} (${task.bytes} bytes)`],
    ["node", nodeWord(node)],
    ["run", run === undefined ? "-" : `turn ${run.turn}, attempt ${run.attempt}, ${counted(run.deaths, "death")}`],
  ];
  const sections: readonly (readonly [title: string, rows: readonly (readonly string[])[]])[] = [
    ["Steps", steps.map((each) => [each.name, each.scope, each.state])],
    [
      "Webhooks",
      webhooks.map((each) => [each.id, each.url, each.state, `${each.attempts}`, each.next ?? "", each.problem ?? ""]),
    ],
    [
      "Takeovers",
      takeovers.map((each) => [
        each.time,
        `turn ${each.turn}`,
        `${each.attempt}`,
        nodeWord(each.from ?? "-"),
        nodeWord(each.node),
      ]),
    ],
    ["Delegations", delegations.map((each) => [each.agent, each.taskId ?? "-", each.state])],
    ["Log", entries.map(entryRow)],
    ["Acts", acts.map(actRow)],
  ];
  const parts = [
    table(facts.map((row) => row.map((cell) => line(cell)))),
    waits.map((each) => whyText(each, io, options)).join(""),
  ];
  return [...parts, ...sections.map(([title, rows]) => section(title, rows))].filter((part) => part !== "").join("\n");
}

function section(title: string, rows: readonly (readonly string[])[]): string {
  return rows.length === 0 ? "" : `${title}\n${table(rows.map((row) => row.map((cell) => line(cell))))}`;
}

function whyText({ text, help, since }: Explanation, { program }: Io, options: OpsOptions): string {
  // The suggested command gets the program and the place of this one, so that it can be copied.
  const command = help?.replace(
    /^parley (ops .*)$/s,
    (_all, words: string) => `${program} ${words}${placeOf(options)}`,
  );
  const shown = command === undefined ? "" : `  $ ${line(command, Number.POSITIVE_INFINITY)}\n`;
  return `${line(text)}\n  since ${line(since)} (${ageOf(since)})\n${shown}`;
}

function placeOf({ url, store, databaseUrl, schema }: OpsOptions): string {
  if (store !== undefined) return ` --store ${quote(store)}`;
  if (databaseUrl === undefined) return url === opsUrl ? "" : ` --url ${quote(url)}`;
  // The URL may have a password.
  return ` --database-url "$DATABASE_URL"${schema === "parley" ? "" : ` --schema ${quote(schema)}`}`;
}

type Why = Pick<ShownTask, "task" | "why" | "waits">;

/** `parley ops why`. */
export async function why(io: Io, taskId: string, options: OneOptions): Promise<number> {
  return asking(io, options, async (ask) => {
    const shown = await onOne<Why>(io, ask, "explainTask", ["why", taskId], options);
    print(io, options, shown, () => shown.waits.map((each) => whyText(each, io, options)).join(""));
    return 0;
  });
}

/** `parley ops counts`. */
export async function counts(io: Io, options: OpsOptions): Promise<number> {
  return asking(io, options, async (ask) => {
    const all = await ask<Counts>("countTasks");
    if (all !== undefined) print(io, options, all, () => countsText(all));
    return 0;
  });
}

export function countsText({ agents, queue, runs }: Counts): string {
  const rows = agents.flatMap(({ agent, states, paused }) =>
    Object.entries(states).map(([state, count]) => [
      agent,
      stateName(state as TaskState),
      `${count}`,
      paused ? "paused" : "",
    ]),
  );
  const more = (capped: boolean): string => (capped ? "+" : "");
  const held = runs.count - runs.free - runs.suspended;
  return (
    table([["AGENT", "STATE", "TASKS", ""], ...rows.map((row) => row.map((cell) => line(cell)))]) +
    `${line(`queue: ${queue.count}${more(queue.more)}, oldest ${Math.round(queue.oldestMs / 1000)} s`)}\n` +
    `${line(`runs: ${held}${more(runs.more)} held, ${runs.free} free, ${runs.suspended} suspended`)}\n`
  );
}

/** `parley ops nodes`. */
export async function nodes(io: Io, options: OpsOptions): Promise<number> {
  return asking(io, options, async (ask) => {
    const answer = await ask<{ readonly nodes: readonly OperatedNode[] }>("listNodes");
    if (answer !== undefined) print(io, options, answer, () => nodesText(answer.nodes));
    return 0;
  });
}

export function nodesText(all: readonly OperatedNode[]): string {
  const rows = all
    .filter(({ name }) => name !== "")
    .map(({ name, self, silentMs, draining, gone, agents, runs }) => [
      nodeWord(name),
      `${runs}`,
      silentMs === undefined ? "-" : `${silentMs} ms`,
      agents?.join(", ") ?? "-",
      [gone ? "gone" : "", draining ? "drains" : "", self ? "answers" : ""].filter(Boolean).join(", "),
    ]);
  return table([["NODE", "RUNS", "SILENT", "AGENTS", ""], ...rows.map((row) => row.map((cell) => line(cell)))]);
}

interface AuditOptions extends OpsOptions {
  readonly limit: number;
  readonly before?: number;
}

/** `parley ops audit`. */
export async function audit(io: Io, options: AuditOptions): Promise<number> {
  const { limit, before } = options;
  return asking(io, options, async (ask) => {
    const { acts = [] } = (await ask<{ readonly acts: readonly Act[] }>("listActs", { limit, before })) ?? {};
    if (acts.length === 0) io.stderr.write("No acts.\n");
    for (const act of acts) print(io, options, act, line(actRow(act).filter(Boolean).join("  ")));
    return 0;
  });
}

function actRow({ number, time, act, outcome, by = "-", name = "", after = "", reason = "", ...of }: Act): string[] {
  const on = of.node === undefined ? (of.taskId ?? of.agent ?? "") : nodeWord(of.node);
  return [`${number}`, time, by, act, outcome, on, name, after, reason];
}

type Names = Readonly<Record<string, string>>;
type TaskCommand = (io: Io, taskId: string, options: ActOptions, more?: Names) => Promise<number>;
type NameCommand = (io: Io, name: string, options: Omit<ActOptions, "agent">) => Promise<number>;

/** The command that runs a route for an act on a task. */
function onTask(id: string, done: (task: OperatedTask, continues?: string) => string): TaskCommand {
  return async (io: Io, taskId: string, options: ActOptions, more: Names = {}): Promise<number> => {
    const { seq, reason } = options;
    return asking(io, options, async (ask) => {
      const words = [
        id.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`),
        taskId,
        ...Object.values(more),
      ] as const;
      const result = await onOne<ActResult<Resumed>>(io, ask, id, words, options, { seq, reason, ...more });
      const { task, continues } = succeeded(result);
      print(io, options, { task, ...defined({ continues }) }, line(done(task, continues)));
      return 0;
    });
  };
}

/** Returns the result, or throws the error of a rejected act with the current state of the task. */
function succeeded<Done>(result: ActResult<Done>): Done {
  if (result.ok) return result;
  const { message, task } = result;
  const now = task === undefined ? "" : `. It is now ${stateName(task.state)}, seq ${task.seq}`;
  throw new CommandError(`${line(message)}${now}`);
}

/** `parley ops cancel`. */
export const cancel: TaskCommand = onTask("cancel", () => "Canceled.");

/** `parley ops resume`. */
export const resume: TaskCommand = onTask("resume", resumed);

function resumed(task: OperatedTask, continues?: string): string {
  return continues === undefined ? "Resumed." : `Task ${task.taskId} continues task ${continues}.`;
}

/** `parley ops retry-step`. */
export async function retryStep(io: Io, taskId: string, step: string, options: ActOptions): Promise<number> {
  return onTask("retryStep", resumed)(io, taskId, options, { step });
}

/** `parley ops drop-wait`. */
export async function dropWait(io: Io, taskId: string, wait: string, options: ActOptions): Promise<number> {
  return onTask("dropWait", () => "The wait is over.")(io, taskId, options, { wait });
}

/** The command that runs a route for an act on an agent or a node. */
function onName(id: string, input: "agent" | "node", done: (name: string, unchecked: boolean) => string): NameCommand {
  return async (io: Io, name: string, options: Omit<ActOptions, "agent">): Promise<number> =>
    asking(io, options, async (ask) => {
      const { reason } = options;
      const full = input === "node" ? await nodeNamed(ask, name) : name;
      const result = await ask<ActResult<Pick<DrainedNode, "unchecked">>>(id, { [input]: full, reason });
      if (result === undefined) throw new CommandError(line(`unknown ${input} ${name}`));
      const answer = succeeded(result);
      const word = input === "node" ? nodeWord(name) : name;
      print(io, options, answer, line(done(word, answer.unchecked === true)));
      return 0;
    });
}

export const pause: NameCommand = onName(
  "pause",
  "agent",
  (agent) => `Paused agent ${agent}. Messages wait in the queue.`,
);
export const unpause: NameCommand = onName("unpause", "agent", (agent) => `Agent ${agent} starts turns again.`);
const unknown = "The nodes are not known here, so nobody checked the name: parley ops undrain withdraws the order.";
export const drain: NameCommand = onName(
  "drain",
  "node",
  (node, unchecked) => `Draining node ${node}: it starts no new turns.${unchecked ? ` ${unknown}` : ""}`,
);
export const undrain: NameCommand = onName("undrain", "node", (node) => `Node ${node} starts turns again.`);

/** Whether an error may be temporary: `parley top` then shows it, and retries in the next round. */
export function isPassing(error: unknown): boolean {
  return error instanceof CommandError || (error instanceof A2AError && error.code === "Unavailable");
}
