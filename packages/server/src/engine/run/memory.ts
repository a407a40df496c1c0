import { Waiters, type Logger } from "@parley/a2a/internal/base/index";
import { stepBounds, type OpenWait, type TurnMemory, type WaitingEvent } from "@parley/a2a/internal/protocol/index";
import {
  stepFeature,
  waitFeature,
  type FeatureEffect,
  type FeatureRow,
  type Store,
  type TaskKey,
} from "../../store/index.ts";
import { agentMistake } from "../shared/mistakes.ts";
import type { Phase } from "./phase.ts";
import { forgetEarlier, Remembered, roomFor } from "./remembered.ts";
import { begunKey, isEvent, scopeOf, waitKey, waitRow, type ScopeName, type StoredEvent } from "./step-rows.ts";

/** The run whose turn has steps, or waits. */
interface RememberingRun {
  readonly store: Pick<Store, "features">;
  readonly logger: Logger;
  readonly task: TaskKey;
  /** The turn that the function sees, from 1. */
  readonly turn: number;
  readonly phase: () => Phase;
  /** The turn is alive. */
  readonly onProgress: () => void;
  /** How many bytes of results there are. */
  readonly onBytes: (bytes: number) => void;
  /** The store could not be read. Returns what is thrown. */
  readonly onFailed: (error: unknown) => unknown;
}

/** What steps and waits keep with a task: read once in a turn, because only this run changes it. Events are read when they are asked for. */
export async function openMemory(run: RememberingRun): Promise<RunMemory> {
  const { store, task } = run;
  // A message without a task has no rows.
  const isStored = run.phase().fence !== undefined;
  const rowsOf = (feature: string): Promise<readonly FeatureRow[]> =>
    isStored ? store.features(task, task.taskId, feature) : Promise.resolve([]);
  return new RunMemory(run, await rowsOf(stepFeature), await rowsOf(waitFeature));
}

/** Each of them is a row, and a task has few. */
const maxWaits = 64;
/** Most bytes of the names of steps that have begun, as JSON. */
const maxBegun = 16 << 10;

/** Names of steps that are under way. */
class Running extends Set<string> {
  readonly #waiters = new Waiters();

  override delete(name: string): boolean {
    const deleted = super.delete(name);
    if (this.size === 0) this.#waiters.wake();
    return deleted;
  }

  /** Resolves once there are none. */
  async empty(): Promise<void> {
    while (this.size > 0) await this.#waiters.wait();
  }
}

/** What the turn of a run remembers. */
export class RunMemory implements TurnMemory {
  readonly running: Running = new Running();
  readonly had: Set<string> = new Set();
  readonly #run: RememberingRun;
  readonly #results: { readonly turn: Remembered; readonly task: Remembered };
  readonly #begun: { readonly turn: Set<string>; readonly task: Set<string> };
  readonly #waits = new Map<string, OpenWait>();
  /** Of them, those of earlier attempts that this one has not come to. */
  readonly #unseen = new Set<string>();
  /** Events that this run has taken. Their rows may not be deleted yet. */
  readonly #taken = new Set<string>();
  /** What deletes the results of earlier turns, with the first that is stored. */
  #forget: readonly FeatureEffect[];

  constructor(run: RememberingRun, steps: readonly FeatureRow[], waits: readonly FeatureRow[]) {
    this.#run = run;
    const { turn } = run;
    this.#results = { turn: new Remembered(`${turn}`, steps), task: new Remembered("task", steps) };
    const begunIn = (scope: ScopeName): Set<string> =>
      new Set(JSON.parse(steps.find(({ key }) => key === begunKey(scope))?.value ?? "[]") as string[]);
    this.#begun = { turn: begunIn(`${turn}`), task: begunIn("task") };
    const ended = waits.filter(({ key }) => Number(scopeOf(key)) < turn);
    this.#forget = [...forgetEarlier(steps, turn), ...ended.map(({ key }) => deleted(waitFeature, key))];
    for (const { key, value } of waits) {
      if (scopeOf(key) !== `${turn}`) continue;
      const own = key.slice(key.indexOf(".") + 1);
      this.#waits.set(own, JSON.parse(value) as OpenWait);
      this.#unseen.add(own);
    }
    run.onBytes(this.#bytes);
  }

  get leaving(): boolean {
    const { stopped, suspends, waits } = this.#run.phase();
    return stopped || suspends || waits !== undefined;
  }

  find(scope: "turn" | "task", name: string): string | undefined {
    return this.#results[scope].find(stepName(name));
  }

  room(name: string): number {
    return roomFor(stepName(name), this.#bytes);
  }

  async keyOf(scope: "turn" | "task", name: string): Promise<string> {
    const { agent, owner, taskId } = this.#run.task;
    const of = ["parley step 1", agent, owner, taskId, this.#scopeName(scope), name];
    const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(JSON.stringify(of)));
    return Array.from(new Uint8Array(digest, 0, 16), (byte) => byte.toString(16).padStart(2, "0")).join("");
  }

  async begin(scope: "turn" | "task", name: string): Promise<boolean> {
    const begun = this.#begun[scope];
    const before = begun.has(name);
    begun.add(name);
    // No earlier attempt came to this step, so none of their crashes was caused by what comes from here on.
    if (!before) this.#run.phase().clearCrashSuspicion();
    const effect = this.#begunRow(scope);
    // Also where it is stored already: a run that has lost its lease finds out before it does anything.
    await this.#keep([...this.#forgetting(), effect]);
    return before;
  }

  async remember(scope: "turn" | "task", name: string, json: string): Promise<void> {
    this.#begun[scope].delete(name);
    await this.#keep([...this.#results[scope].add(stepName(name), json), this.#begunRow(scope)]);
    this.#hasProgress();
  }

  ended(key: string): string | undefined {
    return this.#results.turn.find(waitName(key));
  }

  waiting(key: string): OpenWait | undefined {
    return this.#waits.get(key);
  }

  wait(key: string, wait: OpenWait): void {
    this.#unseen.delete(key);
    if (this.#waits.has(key)) return;
    if (this.#waits.size >= maxWaits) throw agentMistake(`a turn waits for at most ${maxWaits} things at a time`);
    this.#waits.set(key, wait);
    this.#later([...this.#forgetting(), waitRow(this.#run.turn, key, wait)]);
  }

  over(key: string, json: string, event?: string): void {
    const name = waitName(key);
    if (roomFor(name, this.#bytes) < json.length * 3) {
      throw agentMistake(`the turn has waited too often: its results take more than ${stepBounds.results} bytes`);
    }
    this.#waits.delete(key);
    this.#unseen.delete(key);
    this.#later([
      this.#noWait(key),
      ...this.#results.turn.add(name, json),
      ...(event === undefined ? [] : [deleted(waitFeature, event)]),
    ]);
    this.#hasProgress();
  }

  leave(key: string): void {
    if (this.#waits.delete(key)) this.#later([this.#noWait(key)]);
  }

  async event(name: string): Promise<WaitingEvent | undefined> {
    for (const { key, value } of await this.#rows()) {
      if (!isEvent({ key })) continue;
      const event = JSON.parse(value) as StoredEvent;
      // Another one may have its place by now.
      if (event.name !== name || this.#taken.has(`${key} ${event.id}`)) continue;
      this.#taken.add(`${key} ${event.id}`);
      return { key, data: event.data };
    }
    return undefined;
  }

  drop(event: string): void {
    this.#later([deleted(waitFeature, event)]);
  }

  /**
   * The turn lets go of the process, and waits for these. Others are of an earlier attempt, and nobody waits for them any more: a row that is
   * over would wake the task again and again.
   */
  keepOnly(keys: readonly string[]): void {
    const others = [...this.#waits.keys()].filter((key) => !keys.includes(key));
    if (others.length === 0) return;
    const { logger, turn } = this.#run;
    if (others.some((key) => this.#unseen.has(key))) {
      logger.warn(
        "An agent did not come to a wait of its earlier attempt, which is forgotten. Where the times or the order of its waits differ, give each a key",
        { turn },
      );
    }
    for (const key of others) this.leave(key);
  }

  /** A checkpoint was saved: the turn does not come to the waits before it any more. `counts`: their numbers. */
  forgetWaits(counts: ReadonlyMap<string, number>): void {
    const effects = this.#results.turn.forget((name) => {
      const at = name.lastIndexOf("#");
      return name.startsWith("w") && Number(name.slice(at + 1)) <= (counts.get(name.slice(1, at)) ?? 0);
    });
    if (effects.length > 0) this.#later(effects);
    this.#run.onBytes(this.#bytes);
  }

  get #bytes(): number {
    return this.#results.turn.bytes + this.#results.task.bytes;
  }

  #hasProgress(): void {
    this.#run.onProgress();
    this.#run.onBytes(this.#bytes);
  }

  async #rows(): Promise<readonly FeatureRow[]> {
    const { store, task, phase, onFailed } = this.#run;
    if (phase().fence === undefined) return [];
    try {
      return await store.features(task, task.taskId, waitFeature);
    } catch (error) {
      throw onFailed(error);
    }
  }

  #scopeName(scope: "turn" | "task"): ScopeName {
    return scope === "task" ? "task" : `${this.#run.turn}`;
  }

  #begunRow(scope: "turn" | "task"): FeatureEffect {
    const key = begunKey(this.#scopeName(scope));
    const names = [...this.#begun[scope]];
    if (names.length === 0) return deleted(stepFeature, key);
    const value = JSON.stringify(names);
    if (value.length * 2 > maxBegun && new TextEncoder().encode(value).length > maxBegun) {
      throw agentMistake("turn.step(): too many steps of the turn have begun, and are not done");
    }
    return { effect: "feature", op: "set", feature: stepFeature, key, value };
  }

  #noWait(key: string): FeatureEffect {
    return deleted(waitFeature, waitKey(this.#run.turn, key));
  }

  #forgetting(): readonly FeatureEffect[] {
    const effects = this.#forget;
    this.#forget = [];
    return effects;
  }

  #keep(effects: readonly FeatureEffect[]): Promise<void> {
    const { phase } = this.#run;
    phase().makeTask();
    return phase().keep(effects);
  }

  /** It is stored with what the turn stores next. Where that fails, the turn is over, and says so elsewhere. */
  #later(effects: readonly FeatureEffect[]): void {
    this.#keep(effects).catch(() => {});
  }
}

function stepName(name: string): string {
  return `s${name}`;
}

function waitName(key: string): string {
  return `w${key}`;
}

function deleted(feature: string, key: string): FeatureEffect {
  return { effect: "feature", op: "delete", feature, key };
}
