import { utf8Length, Waiters } from "@parley/a2a/internal/base/index";
import { stepBounds, type OpenWait, type TurnMemory, type WaitingEvent } from "@parley/a2a/internal/protocol/index";
import {
  deleteRow,
  featureBounds,
  stepFeature,
  waitFeature,
  type FeatureEffect,
  type FeatureRow,
} from "../../store/index.ts";
import { agentMistake } from "../shared/mistakes.ts";
import type { KeepingTurn } from "./phase.ts";
import {
  begunJson,
  begunKey,
  isBegun,
  isEvent,
  eventJson,
  scopeOf,
  waitJson,
  waitKey,
  waitRow,
  type ScopeName,
} from "./task-rows.ts";
import { storedJson } from "@parley/a2a/internal/base/json";
import { sha256, toHex } from "@parley/a2a/internal/base/bytes";

interface RememberingTurn extends KeepingTurn {
  /** Called if the store could not be read. Returns the error to throw. */
  readonly onFailed: (error: unknown) => unknown;
}

/** Reads the stored steps and waits of a task, once per turn, because only this run changes them. Events are read on demand. */
export async function openMemory(run: RememberingTurn): Promise<RunMemory> {
  const { settings, task } = run;
  // A message without a task has no rows.
  const isStored = run.phase().fence !== undefined;
  const rowsOf = (feature: string): Promise<readonly FeatureRow[]> =>
    isStored ? settings.store.features(task, task.taskId, feature) : Promise.resolve([]);
  return new RunMemory(run, await rowsOf(stepFeature), await rowsOf(waitFeature));
}

const textJson = storedJson<string>();
/** The name of a step or a wait, and its result, if any. */
const lineJson = storedJson<readonly [name: string, result?: unknown]>();

/** Maximum open waits. Each wait is a row, and the rows of a task are limited. */
const maxWaits = 64;
/** Maximum bytes of the names of steps that have begun, as JSON. */
const maxBegun = 16 << 10;

/** Names of steps in progress. */
class Running extends Set<string> {
  readonly #waiters = new Waiters();

  override delete(name: string): boolean {
    const deleted = super.delete(name);
    if (this.size === 0) this.#waiters.wake();
    return deleted;
  }

  async empty(): Promise<void> {
    while (this.size > 0) await this.#waiters.wait();
  }
}

export class RunMemory implements TurnMemory {
  readonly running: Running = new Running();
  readonly had: Set<string> = new Set();
  readonly #run: RememberingTurn;
  readonly #results: { readonly turn: Remembered; readonly task: Remembered };
  readonly #begun: { readonly turn: Map<string, number>; readonly task: Map<string, number> };
  readonly #waits = new Map<string, OpenWait>();
  /** Waits of earlier attempts that this attempt has not reached yet. */
  readonly #unseen = new Set<string>();
  /** Events that this run has consumed. Their rows may still exist. */
  readonly #taken = new Set<string>();
  /** Effects that delete the results of earlier turns, together with the first new result. */
  #forget: readonly FeatureEffect[];

  constructor(run: RememberingTurn, steps: readonly FeatureRow[], waits: readonly FeatureRow[]) {
    this.#run = run;
    const { number: turn } = run;
    this.#results = { turn: new Remembered(`${turn}`, steps), task: new Remembered("task", steps) };
    const begunIn = (scope: ScopeName): Map<string, number> => {
      const read = begunJson.read(steps.find(({ key }) => key === begunKey(scope))?.value ?? "[]");
      return new Map(read.map((each) => (typeof each === "string" ? [each, this.#now] : each)));
    };
    this.#begun = { turn: begunIn(`${turn}`), task: begunIn("task") };
    const ended = waits.filter(({ key }) => Number(scopeOf(key)) < turn);
    this.#forget = [...forgetEarlier(steps, turn), ...ended.map(({ key }) => deleteRow(waitFeature, key))];
    for (const { key, value } of waits) {
      if (scopeOf(key) !== `${turn}`) continue;
      const own = key.slice(key.indexOf(".") + 1);
      this.#waits.set(own, waitJson.read(value));
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
    return toHex((await sha256(JSON.stringify(of))).subarray(0, 16));
  }

  async begin(scope: "turn" | "task", name: string): Promise<boolean> {
    const begun = this.#begun[scope];
    const before = begun.has(name);
    begun.set(name, this.#now);
    // No earlier attempt reached this step, so the code from here on did not cause the crashes of those attempts.
    if (!before) this.#run.phase().clearCrashSuspicion();
    const effect = this.#begunRow(scope);
    // Append the row even if it is stored already, so that a run that has lost its lease fails before the step has an effect.
    await this.#keep([...this.#forgetting(), effect]);
    return before;
  }

  async remember(scope: "turn" | "task", name: string, json: string): Promise<void> {
    const results = this.#results[scope];
    const effects = results.add(stepName(name), json, this.#begun[scope].get(name), this.#now);
    this.#begun[scope].delete(name);
    await this.#keep([...effects, this.#begunRow(scope)]);
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
    this.#later([...this.#forgetting(), waitRow(this.#run.number, key, wait)]);
  }

  over(key: string, json: string, event?: string): void {
    const name = waitName(key);
    if (roomFor(name, this.#bytes) < json.length * 3) {
      throw agentMistake(`the turn has waited too often: its results take more than ${stepBounds.results} bytes`);
    }
    const { since } = this.#waits.get(key) ?? {};
    this.#waits.delete(key);
    this.#unseen.delete(key);
    this.#later([
      this.#noWait(key),
      ...this.#results.turn.add(name, json, since, this.#now),
      ...(event === undefined ? [] : [deleteRow(waitFeature, event)]),
    ]);
    this.#hasProgress();
  }

  leave(key: string): void {
    if (this.#waits.delete(key)) this.#later([this.#noWait(key)]);
  }

  async event(name: string): Promise<WaitingEvent | undefined> {
    for (const { key, value } of await this.#rows()) {
      if (!isEvent({ key })) continue;
      const event = eventJson.read(value);
      // A different event may now have the same key, so compare the id, too.
      if (event.name !== name || this.#taken.has(`${key} ${event.id}`)) continue;
      this.#taken.add(`${key} ${event.id}`);
      return { key, data: event.data };
    }
    return undefined;
  }

  drop(event: string): void {
    this.#later([deleteRow(waitFeature, event)]);
  }

  /**
   * The turn releases the process and waits for these keys. Removes the waits of earlier attempts, because the row of an ended
   * wait would wake the task repeatedly.
   */
  keepOnly(keys: readonly string[]): void {
    const others = [...this.#waits.keys()].filter((key) => !keys.includes(key));
    if (others.length === 0) return;
    const { logger, number: turn } = this.#run;
    if (others.some((key) => this.#unseen.has(key))) {
      logger.warn(
        "Agent skipped a wait of its earlier attempt, which is dropped; give each wait a key if their times or order differ",
        { turn },
      );
    }
    for (const key of others) this.leave(key);
  }

  /** Forgets the results of waits before a saved checkpoint, which the turn never reaches again. `counts`: how many waits of each name these are. */
  forgetWaits(counts: ReadonlyMap<string, number>): void {
    const effects = this.#results.turn.forget((name) => {
      const at = name.lastIndexOf("#");
      const [kind = ""] = /^t?w/.exec(name) ?? [];
      return kind !== "" && Number(name.slice(at + 1)) <= (counts.get(name.slice(kind.length, at)) ?? 0);
    });
    if (effects.length > 0) this.#later(effects);
    this.#run.onBytes(this.#bytes);
  }

  get #now(): number {
    return Math.floor(this.#run.settings.clock.now());
  }

  get #bytes(): number {
    return this.#results.turn.bytes + this.#results.task.bytes;
  }

  #hasProgress(): void {
    this.#run.onProgress();
    this.#run.onBytes(this.#bytes);
  }

  async #rows(): Promise<readonly FeatureRow[]> {
    const { settings, task, phase, onFailed } = this.#run;
    if (phase().fence === undefined) return [];
    try {
      return await settings.store.features(task, task.taskId, waitFeature);
    } catch (error) {
      throw onFailed(error);
    }
  }

  #scopeName(scope: "turn" | "task"): ScopeName {
    return scope === "task" ? "task" : `${this.#run.number}`;
  }

  #begunRow(scope: "turn" | "task"): FeatureEffect {
    const key = begunKey(this.#scopeName(scope));
    const begun = [...this.#begun[scope]];
    if (begun.length === 0) return deleteRow(stepFeature, key);
    const value = begunJson.write(begun);
    if (value.length * 2 > maxBegun && new TextEncoder().encode(value).length > maxBegun) {
      throw agentMistake("turn.step(): too many steps of the turn are unfinished");
    }
    return { effect: "feature", op: "set", feature: stepFeature, key, value };
  }

  #noWait(key: string): FeatureEffect {
    return deleteRow(waitFeature, waitKey(this.#run.number, key));
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

  /** Stores the effects with the next append of the turn. If that append fails, it reports the error. */
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

/** The name of the line with a result's times. */
function timeName(name: string): string {
  return `t${name}`;
}

/*
 * Results of steps and waits as rows. Each result is a line of one text, which is cut into as few rows as possible, because a turn may have
 * many steps, but the rows of a task are limited.
 */

/** Minimum bytes of results to delete. Smaller amounts are not worth rewriting the rows. */
const minForgotten = 16 << 10;

class Remembered {
  readonly #scope: ScopeName;
  /** Results by the name of their step or wait. */
  readonly #lines = new Map<string, string>();
  #last = 0;
  #text = "";
  #bytes = 0;

  /** `rows`: the rows of `stepFeature`, of all scopes. */
  constructor(scope: ScopeName, rows: readonly FeatureRow[]) {
    this.#scope = scope;
    const own = rows
      .filter(({ key }) => scopeOf(key) === scope && !isBegun(key))
      .map(({ key, value }) => ({ number: Number(key.slice(key.indexOf(".") + 1)), text: textJson.read(value) }))
      .sort((a, b) => a.number - b.number);
    const last = own.at(-1);
    if (last === undefined) return;
    this.#last = last.number;
    this.#text = last.text;
    const all = own.map(({ text }) => text).join("");
    this.#bytes = utf8Length(all);
    for (const line of all.split("\n")) if (line !== "") this.#lines.set(lineJson.read(line)[0], line);
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** A result as JSON text. `""`: a result without a value. `undefined`: no result. */
  find(name: string): string | undefined {
    const line = this.#lines.get(name);
    if (line === undefined) return undefined;
    const [, value] = lineJson.read(line);
    return value === undefined ? "" : JSON.stringify(value);
  }

  /** `begun`: when the step began, in milliseconds since the Unix epoch. `begun` and `ended` have a separate line, for operators. */
  add(name: string, json: string, begun: number | undefined, ended: number): readonly FeatureEffect[] {
    const line = lineOf(name, json);
    this.#lines.set(name, line);
    const time = begun === undefined ? "" : lineOf(timeName(name), `[${begun},${ended}]`);
    if (time !== "") this.#lines.set(timeName(name), time);
    this.#bytes += utf8Length(line) + utf8Length(time);
    return this.#write(this.#text + line + time);
  }

  /** The effects that delete results. Empty if there are only few to delete, because deleting rewrites the remaining rows. */
  forget(isOver: (name: string) => boolean): readonly FeatureEffect[] {
    const over = [...this.#lines].filter(([name]) => isOver(name));
    const freed = over.reduce((sum, [, line]) => sum + utf8Length(line), 0);
    if (freed < Math.max(minForgotten, this.#bytes / 4)) return [];
    for (const [name] of over) this.#lines.delete(name);
    this.#bytes -= freed;
    const before = this.#last;
    this.#last = 0;
    const effects = [...this.#write([...this.#lines.values()].join(""))];
    for (let row = this.#last + 1; row <= before; row += 1) {
      effects.push(deleteRow(stepFeature, `${this.#scope}.${row}`));
    }
    return effects;
  }

  #write(text: string): readonly FeatureEffect[] {
    const effects: FeatureEffect[] = [];
    for (let rest = text; ; this.#last += 1) {
      this.#text = firstRow(rest);
      rest = rest.slice(this.#text.length);
      const value = textJson.write(this.#text);
      effects.push({ effect: "feature", op: "set", feature: stepFeature, key: `${this.#scope}.${this.#last}`, value });
      if (rest === "") return effects;
    }
  }
}

function lineOf(name: string, json: string): string {
  return `[${JSON.stringify(name)}${json === "" ? "" : `,${json}`}]\n`;
}

/** Bytes of a line with times, in addition to the name. */
const timeBytes = 32;

/** Bytes left for the result of a step. `stored`: bytes of earlier results. */
function roomFor(name: string, stored: number): number {
  const line = utf8Length(lineOf(name, "")) + 1;
  const time = line + timeBytes;
  return Math.max(0, Math.min(stepBounds.result, stepBounds.results - stored - line - time));
}

/** Row sizes to try, in characters. A character takes at most three bytes as JSON within JSON. */
const rowSizes = [30_000, 15_000, Math.floor(featureBounds.value / 3) - 2];

function firstRow(text: string): string {
  for (const size of rowSizes) {
    const row = text.slice(0, size);
    if (utf8Length(JSON.stringify(row)) <= featureBounds.value) return row;
  }
  throw new RangeError("A row is too large");
}

/** Effects that delete the rows of earlier turns. */
function forgetEarlier(rows: readonly FeatureRow[], turn: number): readonly FeatureEffect[] {
  return rows
    .filter(({ key }) => scopeOf(key) !== "task" && Number(scopeOf(key)) < turn)
    .map(({ key }) => deleteRow(stepFeature, key));
}
