import { isMissing, readNumber } from "../csv/values.ts";
import { readRows, type Table } from "../csv/table.ts";
import { moments, quantile, sampleOf, seededRandom, tidy, type Moments, type Sample } from "../profile/numbers.ts";
import type { GroupPlan, Measure, Plan, ScatterPlan } from "../question/plan.ts";
import { bucketing, filtering, type Bucket } from "./buckets.ts";

/** The numbers of a chart, read from the table. */
export type Numbers = Grouped | Points;

interface Reading {
  /** Rows of the table, and how many of them are part of the answer. */
  readonly rowsRead: number;
  readonly rowsUsed: number;
}

export interface Grouped extends Reading {
  readonly plan: GroupPlan;
  /** In the order of the axis; names in the order of their values, largest first. */
  readonly groups: readonly Group[];
  readonly groupsOmitted: number;
  /** Names of the lines or colours, in the order of their size. */
  readonly series: readonly string[];
  readonly seriesOmitted: number;
  /** Whether medians come from samples. */
  readonly approximate: boolean;
}

export interface Group extends Bucket {
  readonly series?: string;
  readonly rows: number;
  /** One a measure; `null` if no row of the group had a number. */
  readonly values: readonly (number | null)[];
}

export interface Points extends Reading {
  readonly plan: ScatterPlan;
  readonly points: readonly Point[];
}

export interface Point {
  readonly x: number;
  readonly y: number;
  readonly series?: string;
}

const maxBars = 30;
const maxSeries = 10;
const maxPoints = 1500;
/** Values kept for a median: of the whole table, and of one of many groups. */
const wholeSample = 100_000;
const groupSample = 2000;

/** Reads the table once for a plan. Yields the number of rows after each batch, and returns the numbers. */
export async function* collect(table: Table, plan: Plan, signal: AbortSignal): AsyncGenerator<number, Numbers, void> {
  const wanted = filtering(plan.filter);
  const reader = plan.kind === "groups" ? groupReader(plan, table.decimalComma) : pointReader(plan, table.decimalComma);
  let rowsRead = 0;
  let rowsUsed = 0;
  for await (const { rows } of readRows(table, signal)) {
    for (const row of rows) if (wanted(row) && reader.add(row)) rowsUsed += 1;
    rowsRead += rows.length;
    yield rowsRead;
  }
  return { ...reader.finish(), rowsRead, rowsUsed };
}

/** Whether the numbers belong to single rows, not to groups. */
export function isPoints(numbers: Numbers): numbers is Points {
  return numbers.plan.kind === "points";
}

interface RowReader {
  /** Whether the row can be used. */
  add(row: readonly string[]): boolean;
  finish(): Omit<Grouped, keyof Reading> | Omit<Points, keyof Reading>;
}

interface Gathered extends Bucket {
  readonly series: string | undefined;
  rows: number;
  readonly measures: readonly { readonly found: Moments; readonly sample: Sample | undefined }[];
}

function groupReader(plan: GroupPlan, decimalComma: boolean): RowReader {
  const { group, split, measures } = plan;
  const place = group === undefined ? (): Bucket => ({ key: "", label: "all rows" }) : bucketing(group, decimalComma);
  const kept = group === undefined ? wholeSample : groupSample;
  const gathered = new Map<string, Gathered>();
  return {
    add(row) {
      const text = group === undefined ? "" : (row[group.column.index] ?? "");
      if (group !== undefined && isMissing(text)) return false;
      const bucket = place(text);
      const series = split === undefined ? undefined : (row[split.index] ?? "").trim();
      if (bucket === undefined || (series !== undefined && isMissing(series))) return false;
      const id = JSON.stringify([bucket.key, series]);
      let entry = gathered.get(id);
      if (entry === undefined) {
        const fresh = measures.map(({ aggregate }) => ({
          found: moments(),
          sample: aggregate === "median" ? sampleOf(kept) : undefined,
        }));
        entry = { ...bucket, series, rows: 0, measures: fresh };
        gathered.set(id, entry);
      }
      entry.rows += 1;
      for (const [index, { column, aggregate }] of measures.entries()) {
        const cell = column === undefined ? "" : (row[column.index] ?? "");
        const value =
          column === undefined
            ? 1
            : aggregate === "count"
              ? isMissing(cell)
                ? undefined
                : 1
              : readNumber(cell, decimalComma);
        if (value === undefined) continue;
        entry.measures[index]?.found.add(value);
        entry.measures[index]?.sample?.add(value);
      }
      return true;
    },
    finish: () => ({ plan, ...arrange(plan, [...gathered.values()]) }),
  };
}

function valueOf({ aggregate }: Measure, found: Moments, sample: Sample | undefined): number | null {
  if (aggregate === "count") return found.count;
  if (found.count === 0) return null;
  return aggregate === "median" ? tidy(quantile(sample?.sorted() ?? new Float64Array(), 0.5)) : found[aggregate];
}

type Arranged = Omit<Grouped, keyof Reading | "plan">;

/** Puts the groups in order and keeps as many as a chart can show. */
function arrange({ group, measures, limit }: GroupPlan, gathered: readonly Gathered[]): Arranged {
  const groups = gathered.map(({ key, label, series, rows, measures: found }): Group => {
    const values = measures.map((measure, index) =>
      valueOf(measure, found[index]?.found ?? moments(), found[index]?.sample),
    );
    return { key, label, ...(series === undefined ? {} : { series }), rows, values };
  });
  const additive = measures.every(({ aggregate }) => aggregate === "count" || aggregate === "sum");
  const weigh = (of: (item: Group) => string | number): Map<string | number, number> => {
    const weights = new Map<string | number, number>();
    for (const item of groups) {
      const value = item.values[0] ?? 0;
      const known = weights.get(of(item));
      weights.set(of(item), known === undefined ? value : additive ? known + value : Math.max(known, value));
    }
    return weights;
  };
  const seriesNames = ranked(
    weigh(({ series }) => series ?? ""),
    "top",
  ).filter((name) => name !== "");
  const series = seriesNames.slice(0, maxSeries);
  const named = group?.kind === "value" && !group.numeric;
  const byWeight = ranked(
    weigh(({ key }) => key),
    limit?.from ?? "top",
  );
  const room = limit?.count ?? (named ? maxBars : Infinity);
  const kept = new Map(
    byWeight.slice(0, room).map((key, place) => [key, named || limit !== undefined ? place : Number(key)]),
  );
  const shown = groups
    .filter((item) => kept.has(item.key) && (item.series === undefined || series.includes(item.series)))
    .sort(
      (left, right) =>
        (kept.get(left.key) ?? 0) - (kept.get(right.key) ?? 0) ||
        series.indexOf(left.series ?? "") - series.indexOf(right.series ?? ""),
    );
  return {
    groups: shown,
    groupsOmitted: byWeight.length - kept.size,
    series: series.map(String),
    seriesOmitted: seriesNames.length - series.length,
    approximate: gathered.some((entry) => entry.measures.some(({ sample }) => sample?.exact === false)),
  };
}

/** Keys by weight; keys of equal weight by name, so that every run gives the same order. */
function ranked(weights: ReadonlyMap<string | number, number>, from: "top" | "bottom"): readonly (string | number)[] {
  const sign = from === "top" ? -1 : 1;
  return [...weights]
    .sort(([leftKey, left], [rightKey, right]) => sign * (left - right) || (leftKey < rightKey ? -1 : 1))
    .map(([key]) => key);
}

/** Keeps a random sample if there are more points than a chart can show. */
function pointReader(plan: ScatterPlan, decimalComma: boolean): RowReader {
  const { x, y, split } = plan;
  const random = seededRandom(0x5eed);
  const points: Point[] = [];
  let seen = 0;
  return {
    add(row) {
      const left = readNumber(row[x.index] ?? "", decimalComma);
      const right = readNumber(row[y.index] ?? "", decimalComma);
      if (left === undefined || right === undefined) return false;
      const point = { x: left, y: right, ...(split === undefined ? {} : { series: (row[split.index] ?? "").trim() }) };
      seen += 1;
      const place = points.length < maxPoints ? points.length : Math.floor(random() * seen);
      if (place < maxPoints) points[place] = point;
      return true;
    },
    finish: () => ({ plan, points }),
  };
}
