import {
  isMissing,
  readBoolean,
  readDayFirst,
  readIso,
  readMonthFirst,
  readNamedMonth,
  readNumber,
  readYear,
  type DateReader,
} from "../csv/values.ts";
import { moments, quantile, sampleOf, tidy, type Moments, type Sample } from "./numbers.ts";

export type ColumnType = "integer" | "number" | "boolean" | "date" | "datetime" | "category" | "text" | "empty";

/** What is known about a column after all of it was read. */
export interface ColumnProfile {
  readonly index: number;
  readonly name: string;
  readonly type: ColumnType;
  /** How many cells are not empty. */
  readonly count: number;
  readonly missing: number;
  /** How many cells do not fit the type. They are left out of every number here. */
  readonly invalid: number;
  /** The number of different values. If `distinctExact` is false, counting stopped there, and there may be more. */
  readonly distinct: number;
  readonly distinctExact: boolean;
  readonly numbers?: NumberProfile;
  readonly dates?: DateProfile;
  /** The most frequent values. Empty if not all could be counted. */
  readonly top: readonly ValueCount[];
}

export interface NumberProfile {
  readonly min: number;
  readonly max: number;
  readonly mean: number;
  readonly stddev: number;
  readonly sum: number;
  readonly q05: number;
  readonly q25: number;
  readonly median: number;
  readonly q75: number;
  readonly q95: number;
  /** False: the quantiles are those of a random sample of the column. */
  readonly quantilesExact: boolean;
}

export interface DateProfile {
  readonly format: DateFormat;
  /** Milliseconds since the epoch. */
  readonly min: number;
  readonly max: number;
  /** Whether `1/2/2012` could be either: nothing in the column decides it, so the month comes first. */
  readonly ambiguous: boolean;
}

export interface ValueCount {
  readonly value: string;
  readonly count: number;
}

export type DateFormat = "iso" | "month first" | "day first" | "named month" | "year";

export const dateReaders: Readonly<Record<DateFormat, DateReader>> = {
  iso: readIso,
  "month first": readMonthFirst,
  "day first": readDayFirst,
  "named month": readNamedMonth,
  year: readYear,
};

/** What a column may cost in memory. */
export interface ColumnLimits {
  /** Different values that are counted. */
  readonly distinct: number;
  /** Numbers that are kept for the quantiles. */
  readonly sample: number;
}

/** One way to read a column, and how far it goes. */
interface Candidate {
  readonly kind: "number" | "boolean" | DateFormat;
  read(text: string): number | undefined;
  readonly found: Moments;
  readonly sample: Sample | undefined;
  misses: number;
  integers: number;
  /** Dates that are not at midnight. */
  times: number;
}

const longValue = 200;
/** Largest share of cells of another kind, such as typing errors and remarks. */
const tolerance = 0.05;
/** A candidate with this many misfits beyond the tolerance is dropped. */
const patience = 100;

export interface ColumnReader {
  add(text: string): void;
  finish(): ColumnProfile;
}

/** Reads one column, cell by cell, in memory that does not grow with the number of rows. */
export function columnReader(index: number, name: string, limits: ColumnLimits, decimalComma: boolean): ColumnReader {
  const distinct = new Map<string, number>();
  let overflow = false;
  let count = 0;
  let absent = 0;
  let candidates = candidatesOf(name, limits, decimalComma);

  return {
    add(text) {
      if (isMissing(text)) {
        absent += 1;
        return;
      }
      count += 1;
      let tired = false;
      for (const candidate of candidates) {
        const value = candidate.read(text);
        if (value === undefined) {
          candidate.misses += 1;
          tired ||= candidate.misses > count * tolerance + patience;
          continue;
        }
        candidate.found.add(value);
        candidate.sample?.add(value);
        if (Number.isInteger(value)) candidate.integers += 1;
        if (value % 86_400_000 !== 0) candidate.times += 1;
      }
      if (tired) candidates = candidates.filter((candidate) => candidate.misses <= count * tolerance + patience);
      if (overflow) return;
      const key = text.trim();
      const known = distinct.get(key);
      if (known !== undefined) distinct.set(key, known + 1);
      else if (distinct.size < limits.distinct && key.length <= longValue) distinct.set(key, 1);
      else overflow = true;
    },

    finish() {
      const fits = candidates.filter((candidate) => candidate.found.count > 0 && candidate.misses <= count * tolerance);
      const chosen = fits.reduce<Candidate | undefined>(
        (best, next) => (best === undefined || next.misses < best.misses ? next : best),
        undefined,
      );
      return {
        index,
        name,
        type: count === 0 ? "empty" : typeOf(chosen, distinct.size, count, overflow),
        count,
        missing: absent,
        invalid: chosen?.misses ?? 0,
        distinct: distinct.size,
        distinctExact: !overflow,
        ...(chosen?.kind === "number" ? { numbers: numbersOf(chosen) } : {}),
        ...(isDate(chosen) ? { dates: datesOf(chosen, fits) } : {}),
        top: overflow ? [] : topOf(distinct),
      };
    },
  };
}

function candidatesOf(name: string, limits: ColumnLimits, decimalComma: boolean): Candidate[] {
  const candidate = (kind: Candidate["kind"], read: Candidate["read"], sample?: Sample): Candidate => {
    return { kind, read, found: moments(), sample, misses: 0, integers: 0, times: 0 };
  };
  const years = /(^|[^a-z])(year|yr)s?([^a-z]|$)/i.test(name);
  return [
    // Before the numbers, because the first of two equally good candidates is chosen.
    ...(years ? [candidate("year", readYear)] : []),
    candidate("number", (text) => readNumber(text, decimalComma), sampleOf(limits.sample)),
    candidate("boolean", (text) => {
      const value = readBoolean(text);
      return value === undefined ? undefined : Number(value);
    }),
    candidate("iso", readIso),
    candidate("month first", readMonthFirst),
    candidate("day first", readDayFirst),
    candidate("named month", readNamedMonth),
  ];
}

function isDate(candidate: Candidate | undefined): candidate is Candidate & { kind: DateFormat } {
  return candidate !== undefined && candidate.kind !== "number" && candidate.kind !== "boolean";
}

function typeOf(chosen: Candidate | undefined, distinct: number, count: number, overflow: boolean): ColumnType {
  if (chosen?.kind === "number") return chosen.integers === chosen.found.count ? "integer" : "number";
  if (chosen?.kind === "boolean") return "boolean";
  if (isDate(chosen)) return chosen.times > 0 ? "datetime" : "date";
  // A category repeats a few values; a text is new each time.
  const few = distinct <= 20 || distinct <= Math.min(count / 3, 1000);
  return !overflow && few ? "category" : "text";
}

function numbersOf({ found, sample }: Candidate): NumberProfile {
  const sorted = sample?.sorted() ?? new Float64Array();
  const at = (q: number): number => tidy(quantile(sorted, q));
  return {
    min: found.min,
    max: found.max,
    mean: found.mean,
    stddev: found.stddev,
    sum: found.sum,
    q05: at(0.05),
    q25: at(0.25),
    median: at(0.5),
    q75: at(0.75),
    q95: at(0.95),
    quantilesExact: sample?.exact ?? true,
  };
}

function datesOf(chosen: Candidate & { kind: DateFormat }, fits: readonly Candidate[]): DateProfile {
  const other = chosen.kind === "month first" && fits.find(({ kind }) => kind === "day first");
  const ambiguous = other !== undefined && other !== false && other.misses === chosen.misses;
  return { format: chosen.kind, min: chosen.found.min, max: chosen.found.max, ambiguous };
}

function topOf(distinct: ReadonlyMap<string, number>): readonly ValueCount[] {
  const all = Array.from(distinct, ([value, count]) => ({ value, count }));
  return all.sort((left, right) => right.count - left.count || compare(left.value, right.value)).slice(0, 50);
}

function compare(left: string, right: string): number {
  return left < right ? -1 : left > right ? 1 : 0;
}
