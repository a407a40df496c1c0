import { stepFeature, type FeatureEffect, type FeatureRow } from "../store/index.ts";
import { begunKey, isBegun, scopeOf, type ScopeName } from "../engine/run/task-rows.ts";

/* The rows of steps (`engine/run/memory.ts`): results are lines of one text, which is cut into rows. */

/** A step of a task. */
export interface FoundStep {
  readonly name: string;
  readonly scope: ScopeName;
  readonly state: "done" | "begun";
}

/** The rows of a scope that have results, in the order of their text. */
function resultRows(rows: readonly FeatureRow[], scope: string): readonly { row: FeatureRow; text: string }[] {
  return rows
    .filter(({ key }) => scopeOf(key) === scope && !isBegun(key))
    .map((row) => ({ row, text: JSON.parse(row.value) as string, place: Number(row.key.slice(scope.length + 1)) }))
    .sort((a, b) => a.place - b.place);
}

/** The steps of a turn, and of the task. */
export function stepsOf(rows: readonly FeatureRow[], turn: number): readonly FoundStep[] {
  const scopes: readonly ScopeName[] = [`${turn}`, "task"];
  return scopes.flatMap((scope) => {
    const lines = resultRows(rows, scope).map(({ text }) => text);
    const names = lines.join("").split("\n").filter(Boolean).map(nameOfLine);
    const done = names.filter((name) => name.startsWith("s")).map((name) => name.slice(1));
    const begun = JSON.parse(rows.find(({ key }) => key === begunKey(scope))?.value ?? "[]") as readonly string[];
    return [
      ...done.map((name): FoundStep => ({ name, scope, state: "done" })),
      ...begun.filter((name) => !done.includes(name)).map((name): FoundStep => ({ name, scope, state: "begun" })),
    ];
  });
}

function nameOfLine(line: string): string {
  return (JSON.parse(line) as readonly [string])[0];
}

/** What forgets the result of a step. Each row stays where it is, without its part of the line. */
export function forgetStep(rows: readonly FeatureRow[], { scope, name }: FoundStep): readonly FeatureEffect[] {
  const results = resultRows(rows, scope);
  const all = results.map(({ text }) => text).join("");
  const line = all.split("\n").find((each) => each !== "" && nameOfLine(each) === `s${name}`);
  if (line === undefined) return [];
  const from = all.startsWith(`${line}\n`) ? 0 : all.indexOf(`\n${line}\n`) + 1;
  const to = from + line.length + 1;
  let at = 0;
  return results.flatMap(({ row, text }): readonly FeatureEffect[] => {
    const [begin, end] = [at, at + text.length];
    at = end;
    if (end <= from || begin >= to) return [];
    const left = text.slice(0, Math.max(0, from - begin)) + text.slice(Math.max(0, to - begin));
    const { key, value } = row;
    return [{ effect: "feature", op: "set", feature: stepFeature, key, value: JSON.stringify(left), if: { value } }];
  });
}

/** The rows of a turn and of the task, as those of turn 1 of another task. */
export function copiedSteps(rows: readonly FeatureRow[], turn: number): readonly FeatureEffect[] {
  return rows.flatMap(({ key, value }): readonly FeatureEffect[] => {
    const scope = scopeOf(key);
    if (scope !== "task" && scope !== `${turn}`) return [];
    const own = scope === "task" ? key : `1${key.slice(scope.length)}`;
    return [{ effect: "feature", op: "set", feature: stepFeature, key: own, value }];
  });
}
