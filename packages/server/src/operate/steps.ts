import { stepFeature, type FeatureEffect, type FeatureRow } from "../store/index.ts";
import { begunJson, begunKey, isBegun, scopeOf, type ScopeName } from "../engine/run/task-rows.ts";

/* The rows of steps (`engine/run/memory.ts`): results are lines of one text, which is split into rows. */

/** A step of a task. */
export interface FoundStep {
  readonly name: string;
  readonly scope: ScopeName;
  readonly state: "done" | "begun";
  /** When the step began, in milliseconds since the Unix epoch, like `ended`. Absent: an older release stored the step. */
  readonly begun?: number | undefined;
  readonly ended?: number | undefined;
}

/** A finished wait of a turn. Times are in milliseconds since the Unix epoch. */
interface FoundWait {
  readonly name: string;
  readonly begun: number;
  readonly ended: number;
}

type Line = readonly [name: string, result?: unknown];

/** The results of a scope, by the names of their lines. */
function linesOf(rows: readonly FeatureRow[], scope: string): ReadonlyMap<string, unknown> {
  const lines = resultRows(rows, scope).map(({ text }) => text);
  return new Map(
    lines
      .join("")
      .split("\n")
      .filter(Boolean)
      .map((line) => JSON.parse(line) as Line)
      .map(([name, value]) => [name, value]),
  );
}

/** When a step or a wait began and ended. */
function timesOf(lines: ReadonlyMap<string, unknown>, name: string): Pick<FoundStep, "begun" | "ended"> {
  const [begun, ended] = (lines.get(`t${name}`) ?? []) as readonly number[];
  return { begun, ended };
}

/** The finished waits of a turn. */
export function endedWaits(rows: readonly FeatureRow[], turn: number): readonly FoundWait[] {
  const lines = linesOf(rows, `${turn}`);
  return [...lines.keys()].flatMap((line) => {
    const { begun, ended } = timesOf(lines, line);
    return line.startsWith("w") && begun !== undefined && ended !== undefined
      ? [{ name: line.slice(1), begun, ended }]
      : [];
  });
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
    const lines = linesOf(rows, scope);
    const done = [...lines.keys()].filter((name) => name.startsWith("s"));
    const begun = begunJson.read(rows.find(({ key }) => key === begunKey(scope))?.value ?? "[]");
    return [
      ...done.map((line): FoundStep => ({ name: line.slice(1), scope, state: "done", ...timesOf(lines, line) })),
      ...begun.flatMap((each): FoundStep[] => {
        const [name, at] = typeof each === "string" ? [each] : each;
        return lines.has(`s${name}`) ? [] : [{ name, scope, state: "begun", begun: at }];
      }),
    ];
  });
}

function nameOfLine(line: string): string {
  return (JSON.parse(line) as Line)[0];
}

/** The effects that delete the result of a step. Each row keeps its key, but loses its part of the result's line. */
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

/** Copies of the rows of a turn and of the task, as rows of turn 1 of another task. */
export function copiedSteps(rows: readonly FeatureRow[], turn: number): readonly FeatureEffect[] {
  return rows.flatMap(({ key, value }): readonly FeatureEffect[] => {
    const scope = scopeOf(key);
    if (scope !== "task" && scope !== `${turn}`) return [];
    const own = scope === "task" ? key : `1${key.slice(scope.length)}`;
    return [{ effect: "feature", op: "set", feature: stepFeature, key: own, value }];
  });
}
