import { defined } from "@parley/a2a/internal/base/defined";
import type { Ids } from "@parley/a2a/internal/base/index";
import { isTerminal, type Message } from "@parley/a2a/internal/model/index";
import { auditedSubject, type Audit } from "@parley/a2a/internal/protocol/index";
import { queuedTask, queueRow } from "../engine/run/task-rows.ts";
import { messageOf, seenTurn, waitingRun } from "../engine/run/turn-input.ts";
import type { StoredCall } from "../engine/log/records.ts";
import {
  orderNames,
  stepFeature,
  waitFeature,
  type ActEffect,
  type AuditedAct,
  type FeatureEffect,
  type OrderText,
  type Store,
  type StoredRun,
  type TaskAppend,
  type TaskEffect,
  type TaskHead,
} from "../store/index.ts";
import { short } from "./explain.ts";
import {
  nodeWord,
  type ActContext,
  type ActResult,
  type DrainedNode,
  type PausedAgent,
  type Resumed,
  type TaskTarget,
} from "./port.ts";
import { pausedAgent, servedAgents, turnOf, type ReadDeps } from "./read.ts";
import { copiedSteps, forgetStep, stepsOf } from "./steps.ts";
import { clipped, inWords, subjects, viewOf, type ActAbout, type ActText } from "./views.ts";

/* The acts of operators. Each act is stored in the audit, in the same append as its change. */

export interface ActDeps extends ReadDeps {
  readonly ids: Ids;
  readonly audit?: Audit | undefined;
}

/** The row of a failed task with the id of the task that continues it. */
const continuedFeature = "continued";

/** Maximum number of agents that a message names. */
const maxNamed = 20;

/** Maximum attempts of an act without `seq`, if the task changes concurrently. */
const maxTries = 5;

interface Refused {
  readonly refused: "notPossible" | "changed";
  readonly message: string;
}

/** The change of an act, for a task that has not changed since it was read. */
interface Change {
  readonly effects: readonly TaskEffect[];
  readonly after: string;
}

const notPossible = (message: string): Refused => ({ refused: "notPossible", message });

/** The acts of operators on tasks, agents and nodes. */
export class Acts {
  readonly #deps: ActDeps;

  constructor(deps: ActDeps) {
    this.#deps = deps;
  }

  async cancel(target: TaskTarget, context: ActContext): Promise<ActResult> {
    const { store, host } = this.#deps;
    const about: ActAbout = { act: "cancel", agent: target.agent, taskId: target.taskId };
    for (let tries = 0; tries < maxTries; tries += 1) {
      const head = await store.head({ agent: target.agent }, target.taskId);
      const refusal = this.#refusalOf(head, target);
      if (head === undefined || refusal !== undefined) return this.#refuse(about, context, head, refusal);
      if (isTerminal(head.state)) {
        return this.#refuse(about, context, head, notPossible(`The task is over: ${short(head.state)}`));
      }
      const effect = this.#effect(about, context, { before: inWords(head), after: "canceled" });
      const options = { effects: [effect], seq: target.seq, by: context.principal };
      if (await host.cancel(head, options)) return this.#done(about, context);
    }
    return this.#changed(about, context);
  }

  async resume(target: TaskTarget, context: ActContext): Promise<ActResult<Resumed>> {
    const about: ActAbout = { act: "resume", agent: target.agent, taskId: target.taskId };
    const head = await this.#deps.store.head({ agent: target.agent }, target.taskId);
    if (head?.state === "TASK_STATE_FAILED") return this.#continue(about, target, context);
    return this.#act(about, target, context, ({ run }) => {
      if (run?.suspended !== true) {
        return notPossible("The task is neither suspended nor failed. `why` says what it waits for");
      }
      return { effects: freeRun(run), after: "resumed" };
    });
  }

  async retryStep(target: TaskTarget & { readonly step: string }, context: ActContext): Promise<ActResult<Resumed>> {
    const { agent, taskId, step } = target;
    const about: ActAbout = { act: "retry-step", agent, taskId, name: step };
    const head = await this.#deps.store.head({ agent }, taskId);
    if (head?.state === "TASK_STATE_FAILED") return this.#continue(about, target, context);
    return this.#act(about, target, context, (found) => this.#retried(found, step));
  }

  async #retried(head: TaskHead, step: string): Promise<Change | Refused> {
    const { store } = this.#deps;
    if (isTerminal(head.state)) return notPossible(`The task is over: ${short(head.state)}`);
    const waiting = waitingRun(head);
    const run = head.run?.suspended === true ? head.run : waiting;
    if (run === undefined) {
      return notPossible(
        "Only a suspended, waiting or failed task can retry a step: cancel it, or wait until it waits",
      );
    }
    const rows = await store.features(head.task, head.task.taskId, stepFeature);
    const found = stepsOf(rows, seenTurn(run, head.checkpoint)).find(({ name }) => name === step);
    if (found === undefined)
      return notPossible(`The task has no step ${JSON.stringify(step)}. \`show\` lists its steps`);
    return { effects: [...forgetStep(rows, found), ...freeRun(run)], after: "resumed without the result of the step" };
  }

  async dropWait(target: TaskTarget & { readonly wait: string }, context: ActContext): Promise<ActResult> {
    const { agent, taskId, wait } = target;
    const about: ActAbout = { act: "drop-wait", agent, taskId, name: wait };
    return this.#act(about, target, context, async (head) => {
      const waiting = waitingRun(head);
      if (waiting === undefined) return notPossible("The task does not wait for a time or an event");
      const rows = await this.#deps.store.features(head.task, taskId, waitFeature);
      const row = rows.find(({ key }) => key === `${seenTurn(waiting, head.checkpoint)}.${wait}`);
      if (row === undefined)
        return notPossible(`The task has no wait ${JSON.stringify(wait)}. \`why\` lists its waits`);
      const now = Math.floor(this.#deps.clock.now());
      const value = JSON.stringify({ ...(JSON.parse(row.value) as object), until: now });
      const before = row.due === undefined ? { value: row.value } : { value: row.value, due: row.due };
      const set: FeatureEffect = {
        effect: "feature",
        op: "set",
        feature: waitFeature,
        key: row.key,
        value,
        due: now,
        if: before,
      };
      return { effects: [set], after: "the wait is over" };
    });
  }

  /** Creates a new task with the last message of a failed task, because a failed task no longer changes (A2A 1.0 §3.4.3). */
  async #continue(
    about: ActAbout,
    target: TaskTarget & { readonly step?: string },
    context: ActContext,
  ): Promise<ActResult<Resumed>> {
    const { store, host, ids, clock } = this.#deps;
    const head = await store.head({ agent: target.agent }, target.taskId);
    const refusal = this.#refusalOf(head, target);
    if (head === undefined || refusal !== undefined) return this.#refuse(about, context, head, refusal);
    const input = await lastInput(store, head);
    if (input === undefined) {
      return this.#refuse(about, context, head, notPossible("The log was compacted and no longer has its message"));
    }
    const rows = await store.features(head.task, head.task.taskId, stepFeature);
    const turn = await turnOf(store, head);
    const step = target.step === undefined ? undefined : stepsOf(rows, turn).find(({ name }) => name === target.step);
    if (target.step !== undefined && step === undefined) {
      const text = `The task has no step ${JSON.stringify(target.step)}. \`show\` lists its steps`;
      return this.#refuse(about, context, head, notPossible(text));
    }
    const forgotten = step === undefined ? [] : forgetStep(rows, step);
    const changed = new Map(forgotten.flatMap((each) => (each.op === "set" ? [[each.key, each.value]] : [])));
    const kept = rows.map((row) => ({ ...row, value: changed.get(row.key) ?? row.value }));
    const taskId = await this.#continuation(head, context);
    if (taskId === undefined) return this.#changed(about, context);
    const existing = await store.head({ agent: target.agent }, taskId);
    if (existing !== undefined) {
      return this.#refuse(about, context, head, notPossible(`Task ${taskId} already continues this task`));
    }
    const { agent, owner } = head.task;
    const task = { agent, owner, taskId };
    const record = queuedTask(task, head.contextId, againOf(input.message, head, ids), input.call, clock.now());
    const after = `continued by task ${task.taskId}`;
    const item: TaskAppend = {
      task,
      create: { contextId: head.contextId },
      records: [record],
      effects: [
        // Place 0: before all other tasks, because this task has already waited.
        queueRow({ turn: 1, input: 1 }, 0),
        ...copiedSteps(kept, turn),
        ...(head.taskState === undefined ? [] : [{ effect: "taskState", value: head.taskState } as const]),
        this.#effect(about, context, { before: inWords(head), after }),
      ],
    };
    const outcome = await host.append(item, context.principal);
    if (!outcome.ok) return this.#changed(about, context);
    const done = await this.#done({ ...about, taskId: task.taskId }, context);
    return done.ok ? { ...done, continues: target.taskId } : done;
  }

  /**
   * The id of the task that continues a failed task. The id is stored with the failed task first. So a repeated act finds the id, even after a
   * crash before the new task was stored, and no task is continued twice. `undefined`: the failed task changed concurrently.
   */
  async #continuation(head: TaskHead, context: ActContext): Promise<string | undefined> {
    const { store, host, ids } = this.#deps;
    const { task, fence, seq: expect, run = null } = head;
    const [known] = await store.features(task, task.taskId, continuedFeature);
    if (known !== undefined) return String(JSON.parse(known.value));
    const taskId = ids.next();
    const value = JSON.stringify(taskId);
    const set = { effect: "feature", op: "set", feature: continuedFeature, key: "by", value, if: null } as const;
    const { ok } = await host.append({ task, fence, expect, run, records: [], effects: [set] }, context.principal);
    return ok ? taskId : undefined;
  }

  async pause(agent: string, context: ActContext): Promise<ActResult<{ readonly paused: PausedAgent }>> {
    const about: ActAbout = { act: "pause", agent };
    const unknown = await this.#unknownAgent(agent);
    if (unknown !== undefined) return this.#refuse(about, context, undefined, unknown);
    const order = this.#orderText(context);
    const given = await this.#order(orderNames.pause(agent), order, about, context);
    return given ?? { ok: true, paused: pausedAgent(agent, order) };
  }

  /** Rejects a name if no agent with this name has a task, and no node serves such an agent. If no node is known, any name may be right. */
  async #unknownAgent(agent: string): Promise<Refused | undefined> {
    const { host, operators } = this.#deps;
    if (host.agents() === undefined) return undefined;
    const { agents, isWhole } = await servedAgents(this.#deps);
    if (agents.length === 0 || agents.includes(agent) || !isWhole) return undefined;
    const { heads } = await operators.tasks({ agent, order: "newest", limit: 1 });
    if (heads.length > 0) return undefined;
    const rest = agents.length - maxNamed;
    const names = agents.slice(0, maxNamed).join(", ") + (rest > 0 ? ` and ${rest} more` : "");
    return notPossible(`No node serves agent ${agent}, and it has no tasks. Served agents: ${names}`);
  }

  async unpause(agent: string, context: ActContext): Promise<ActResult<{ readonly agent: string }>> {
    const withdrawn = await this.#order(orderNames.pause(agent), null, { act: "unpause", agent }, context);
    return withdrawn ?? { ok: true, agent };
  }

  async drain(node: string, context: ActContext): Promise<ActResult<DrainedNode>> {
    const about: ActAbout = { act: "drain", node };
    const known = this.#deps.host.nodes();
    if (known.size > 0 && !known.has(node)) {
      return this.#refuse(about, context, undefined, notPossible(`No node is named ${node}. \`nodes\` lists them`));
    }
    const given = await this.#order(orderNames.drain(node), this.#orderText(context), about, context);
    const unchecked = known.size === 0 && node !== this.#deps.host.node ? ({ unchecked: true } as const) : {};
    return given ?? { ok: true, node, ...unchecked };
  }

  async undrain(node: string, context: ActContext): Promise<ActResult<{ readonly node: string }>> {
    const withdrawn = await this.#order(orderNames.drain(node), null, { act: "undrain", node }, context);
    return withdrawn ?? { ok: true, node };
  }

  #orderText({ principal, reason }: ActContext): OrderText {
    return { time: this.#deps.clock.now(), ...defined({ by: clipped(principal?.subject), reason }) };
  }

  /** Gives or withdraws an order. Resolves to `undefined` on success, else to the rejection. */
  async #order(
    name: string,
    order: OrderText | null,
    about: ActAbout,
    context: ActContext,
  ): Promise<Extract<ActResult, { readonly ok: false }> | undefined> {
    const { operators, host } = this.#deps;
    const before = (await operators.orders()).find((each) => each.name === name)?.value ?? null;
    const what = about.agent === undefined ? `Node ${nodeWord(about.node ?? "")}` : `Agent ${about.agent}`;
    const word = about.agent === undefined ? "draining" : "paused";
    if (order === null && before === null) {
      return this.#refuse(about, context, undefined, notPossible(`${what} is not ${word}`));
    }
    if (order !== null && before !== null) {
      const { by = "an operator", time } = JSON.parse(before) as OrderText;
      const text = `${what} is ${word} already, by ${by} since ${new Date(time).toISOString()}`;
      return this.#refuse(about, context, undefined, notPossible(text));
    }
    const value = order === null ? null : JSON.stringify(order);
    const after = order === null ? `not ${word}` : word;
    const act = this.#actOf(about, context, { before: order === null ? word : `not ${word}`, after });
    if (!(await operators.change({ order: { name, value, if: before }, act }))) {
      const text = `${what} was changed by another operator meanwhile, or there are too many orders`;
      return this.#refuse(about, context, undefined, { refused: "changed", message: text });
    }
    this.#tell(about, context, "success");
    await host.nudge();
    return undefined;
  }

  /** Changes a task. If the task has changed since it was read, and the act has no `seq`, reads the task again and retries. */
  async #act(
    about: ActAbout,
    target: TaskTarget,
    context: ActContext,
    decide: (head: TaskHead) => Change | Refused | Promise<Change | Refused>,
  ): Promise<ActResult> {
    const { store, host } = this.#deps;
    for (let tries = 0; tries < maxTries; tries += 1) {
      const head = await store.head({ agent: target.agent }, target.taskId);
      const refusal = this.#refusalOf(head, target);
      if (head === undefined || refusal !== undefined) return this.#refuse(about, context, head, refusal);
      const change = await decide(head);
      if ("refused" in change) return this.#refuse(about, context, head, change);
      const effect = this.#effect(about, context, { before: inWords(head), after: change.after });
      const { task, fence, seq: expect, run = null } = head;
      const item = { task, fence, expect, run, records: [], effects: [...change.effects, effect] };
      if ((await host.append(item, context.principal)).ok) return this.#done(about, context);
    }
    return this.#changed(about, context);
  }

  #refusalOf(head: TaskHead | undefined, { seq }: TaskTarget): Refused | undefined {
    if (head === undefined || seq === undefined || seq === head.seq) return undefined;
    return { refused: "changed", message: `The task has changed: its last record is ${head.seq}, not ${seq}` };
  }

  async #done(about: ActAbout, context: ActContext): Promise<ActResult> {
    const { store, host } = this.#deps;
    this.#tell(about, context, "success");
    await host.nudge();
    const { agent = "", taskId = "" } = about;
    const head = await store.head({ agent }, taskId);
    // Retention may have deleted the task in the meantime.
    if (head === undefined) return { ok: false, reason: "notFound", message: "The task was changed, and then deleted" };
    return { ok: true, task: viewOf(head) };
  }

  async #changed(about: ActAbout, context: ActContext): Promise<Extract<ActResult, { readonly ok: false }>> {
    const { agent = "", taskId = "" } = about;
    const head = await this.#deps.store.head({ agent }, taskId);
    return this.#refuse(about, context, head, { refused: "changed", message: "The task keeps changing; try again" });
  }

  /** Stores a rejected act in the audit. `head`: absent for an unknown task. */
  async #refuse(
    about: ActAbout,
    context: ActContext,
    head: TaskHead | undefined,
    refusal: Refused | undefined,
  ): Promise<Extract<ActResult, { readonly ok: false }>> {
    const message = refusal?.message ?? `Agent ${about.agent} has no task ${about.taskId}`;
    const before = head === undefined ? {} : { before: inWords(head) };
    const act = this.#actOf(about, context, { ...before, after: message }, "refused");
    await this.#deps.operators.change({ act });
    this.#tell(about, context, "refused");
    const reason = refusal?.refused ?? "notFound";
    return { ok: false, reason, message, ...defined({ task: head && viewOf(head) }) };
  }

  #effect(about: ActAbout, context: ActContext, change: Pick<ActText, "before" | "after">): ActEffect {
    return { effect: "act", ...this.#actOf(about, context, change) };
  }

  #actOf(
    about: ActAbout,
    { principal, reason }: ActContext,
    change: Pick<ActText, "before" | "after">,
    outcome: ActText["outcome"] = "done",
  ): AuditedAct {
    const { agent = "", taskId, node, name } = about;
    const { subject: by, organization } = principal ?? {};
    const { before, after } = change;
    const who = { by: clipped(by), organization: clipped(organization), reason };
    const what = { name: clipped(name), before, after: clipped(after) };
    const text: ActText = { ...about, outcome, ...defined({ ...who, ...what }) };
    const subject =
      node !== undefined
        ? subjects.node(node)
        : taskId !== undefined
          ? subjects.task(agent, taskId)
          : subjects.agent(agent);
    return { subject, json: JSON.stringify(text), time: this.#deps.clock.now() };
  }

  #tell({ act, agent, taskId }: ActAbout, { principal }: ActContext, outcome: "success" | "refused"): void {
    const { audit, clock } = this.#deps;
    audit?.({
      event: "administration",
      action: `ops.${act}`,
      outcome,
      time: clock.now(),
      ...(agent !== undefined && { agent }),
      ...auditedSubject({ principal, taskId }),
    });
  }
}

/** Releases a run for any process, and resets its crashes to 0. */
function freeRun({ turn, attempt, input }: StoredRun): readonly TaskEffect[] {
  return [
    { effect: "run", run: { turn, attempt, input } },
    { effect: "lease", op: "release" },
  ];
}

/** The user's last message that starts a turn, with the data of its call. */
async function lastInput(
  store: Pick<Store, "read">,
  { task, seq }: TaskHead,
): Promise<{ readonly message: Message; readonly call: StoredCall } | undefined> {
  let found: { readonly message: Message; readonly call: StoredCall } | undefined;
  for (let after = 0; after < seq;) {
    const page = await store.read(task, task.taskId, { after, limit: 100, kinds: ["task", "message"] });
    const last = page?.records.at(-1);
    if (page === undefined || last === undefined) break;
    for (const { kind, json, call } of page.records) {
      if (call === undefined) continue;
      const stored = JSON.parse(call) as StoredCall;
      if (stored.answers === undefined) found = { message: messageOf({ kind, json }), call: stored };
    }
    after = last.seq;
  }
  return found;
}

/** The message for the continuing task: a new message that refers to the failed task. */
function againOf({ taskId: _, ...message }: Message, { task, contextId }: TaskHead, ids: Ids): Message {
  const { referenceTaskIds = [] } = message;
  return {
    ...message,
    messageId: ids.next(),
    contextId,
    referenceTaskIds: [...new Set([...referenceTaskIds, task.taskId])],
  };
}
