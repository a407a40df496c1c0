import type { DateFormat } from "../profile/column.ts";
import type { Aggregate, Mark } from "./request.ts";

/** A question that has been understood: what to read from the table, and how to show it. Columns are indices. */
export type Plan = GroupPlan | ScatterPlan;

export interface GroupPlan {
  readonly kind: "groups";
  readonly measures: readonly Measure[];
  /** Absent: all rows are one group, and the answer is a number. */
  readonly group?: Grouping;
  readonly split?: ColumnRef;
  readonly filter?: Filter;
  readonly mark: Exclude<Mark, "scatter">;
  readonly limit?: { readonly count: number; readonly from: "top" | "bottom" };
  readonly title: string;
  /** Assumptions, for the user. */
  readonly notes: readonly string[];
}

export interface ScatterPlan {
  readonly kind: "points";
  readonly x: ColumnRef;
  readonly y: ColumnRef;
  readonly split?: ColumnRef;
  readonly filter?: Filter;
  readonly title: string;
  readonly notes: readonly string[];
}

export interface ColumnRef {
  readonly index: number;
  readonly name: string;
}

export interface Measure {
  readonly aggregate: Aggregate;
  /** Absent: rows are counted. */
  readonly column?: ColumnRef;
  /** "average temp_max". */
  readonly label: string;
}

export type Grouping =
  | { readonly kind: "value"; readonly column: ColumnRef; readonly numeric: boolean }
  | { readonly kind: "time"; readonly column: ColumnRef; readonly format: DateFormat; readonly unit: TimeUnit }
  | { readonly kind: "bin"; readonly column: ColumnRef; readonly start: number; readonly step: number };

export type Filter =
  | { readonly kind: "value"; readonly column: ColumnRef; readonly value: string }
  | { readonly kind: "year"; readonly column: ColumnRef; readonly format: DateFormat; readonly year: number };

/** The first units follow the calendar; the others repeat with each day, week or year. */
export type TimeUnit =
  | "year"
  | "quarter"
  | "month"
  | "week"
  | "day"
  | "hour"
  | "instant"
  | "month of the year"
  | "day of the week"
  | "hour of the day";

/** A question to the user, which must be answered before there can be a plan. */
export interface Ask {
  /** Key of the open question. The answer is stored under it, and found when the question is resolved again. */
  readonly key: string;
  readonly prompt: string;
  readonly choices: readonly Choice[];
  /** Whether more than one of the choices may be taken. */
  readonly several?: boolean;
}

export interface Choice {
  readonly value: string;
  readonly label: string;
}

/** The answers so far by their key: values of choices. */
export interface Answers {
  readonly [key: string]: readonly string[];
}
