import { utf8Length } from "@parley/a2a/internal/base/index";
import { wellFormed } from "@parley/a2a/internal/base/json-text";
import type { FeatureEffect, FeatureState } from "./append.ts";

/** The rules for the rows that features keep with a task. They are the same in every store. */

/** Rows of delegations that are open. */
export const delegationFeature = "delegation";
/** Rows of delegations that are over. */
export const delegatedFeature = "delegation.over";

/** Results of steps and waits, and the names of steps that have begun. */
export const stepFeature = "step";
/** Waits that are not over, and events that nobody has taken. What may let a task go on is due. */
export const waitFeature = "wait";

/** Tasks that wait for a process with room for their run: a row each, whose `due` is their place in the queue. */
export const queueFeature = "queue";

/** How far the replay of a task that was lost several times has come: one row, the `seq` of the last event that was repeated. */
export const replayFeature = "replay";

/** How large the rows of features may be. All rows of a task together fit into one page (`defaultPageBytes`). */
export interface FeatureBounds {
  /** Most bytes of a feature's name. */
  readonly name: number;
  /** Most bytes of a key. */
  readonly key: number;
  /** Most bytes of a value. */
  readonly value: number;
  /** Most rows of a task, of all features together. */
  readonly rows: number;
}

/** What stores accept: names of 256 bytes, keys of 512, values of 32 KiB, 256 rows. */
export const featureBounds: FeatureBounds = { name: 256, key: 512, value: 32 << 10, rows: 256 };

/** The rows of a task before an item. */
export interface FeatureLookup {
  /** The row under a key. */
  find(feature: string, key: string): FeatureState | undefined;
  /** How many rows the task has, of all features. */
  count(): number;
}

/** Checks an effect before anything is stored. Throws a `TypeError` for a malformed one. */
export function checkFeature(effect: FeatureEffect): void {
  checkText("The name of a feature", effect.feature, featureBounds.name);
  switch (effect.op) {
    case "set":
      checkText("The key of a feature", effect.key, featureBounds.key);
      checkValue(effect.value);
      if (effect.due !== undefined) checkDue(effect.due);
      break;
    case "delete":
      checkText("The key of a feature", effect.key, featureBounds.key);
      break;
    case "wake":
      checkDue(effect.due);
      break;
    default:
      // A change that was ignored would be missing without a trace.
      throw new TypeError(`No row of a feature is changed by ${JSON.stringify((effect as { op: unknown }).op)}`);
  }
}

function checkDue(due: number): void {
  if (!Number.isSafeInteger(due)) throw new TypeError("The due of a feature is in whole milliseconds");
}

/** Databases refuse or change other text: a NUL, a lone surrogate. The transaction would then fail with the items of others. */
function checkValue(value: string): void {
  if (typeof value === "string" && utf8Length(value) > featureBounds.value) {
    throw new TypeError(`The value of a feature takes more than ${featureBounds.value} bytes`);
  }
  if (typeof value !== "string" || wellFormed(value) !== value || !isJson(value)) {
    throw new TypeError("The value of a feature is JSON text, as JSON.stringify() returns it");
  }
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

function checkText(what: string, text: string, most: number): void {
  if (typeof text !== "string") throw new TypeError(`${what} is a string`);
  const bytes = utf8Length(text);
  if (bytes === 0 || bytes > most) throw new TypeError(`${what} takes 1 to ${most} bytes, and this one ${bytes}`);
}

/** Why the effects of an item are refused. `undefined`: they are not. */
export function refuseFeatures(effects: readonly FeatureEffect[], rows: FeatureLookup): "changed" | "full" | undefined {
  /** Whether a row exists after the effects so far. */
  const present = new Map<string, boolean>();
  let added = 0;
  for (const effect of effects) {
    if (effect.op === "wake") continue;
    const { feature, key } = effect;
    const before = rows.find(feature, key);
    if (effect.if !== undefined && !isSame(before, effect.if)) return "changed";
    const name = JSON.stringify([feature, key]);
    const was = present.get(name) ?? before !== undefined;
    const is = effect.op === "set";
    present.set(name, is);
    added += Number(is) - Number(was);
  }
  return added > 0 && rows.count() + added > featureBounds.rows ? "full" : undefined;
}

function isSame(row: FeatureState | undefined, wanted: FeatureState | null): boolean {
  return wanted === null ? row === undefined : row?.value === wanted.value && row.due === wanted.due;
}
