import type { ColumnProfile } from "../profile/column.ts";
import type { ColumnRef } from "./plan.ts";
import type { Aggregate } from "./request.ts";

/** The operations on a column, and their names. */

const maxSeries = 50;

/** How each aggregate is put into words. */
export const aggregateNames: Readonly<Record<Aggregate, string>> = {
  mean: "average",
  median: "median",
  sum: "total",
  count: "count of",
  min: "lowest",
  max: "highest",
};

export function isNumber(column: ColumnProfile): boolean {
  return column.numbers !== undefined;
}

export function isDate(column: ColumnProfile): boolean {
  return column.dates !== undefined;
}

/** Whether there are few enough values for a colour each. */
export function isSeries(column: ColumnProfile): boolean {
  return !isNumber(column) && !isDate(column) && column.distinctExact && column.distinct <= maxSeries;
}

/** Whether the words of a column occur often enough for a colour each. A chart shows the most frequent ones. */
export function mayColour(column: ColumnProfile): boolean {
  return isSeries(column) || column.type === "category";
}

export function mayGroup(column: ColumnProfile): boolean {
  return isDate(column) || mayColour(column);
}

export function kindName(column: ColumnProfile): string {
  return isDate(column) ? "dates" : column.type === "boolean" ? "yes and no" : "words";
}

export function ref({ index, name }: ColumnProfile): ColumnRef {
  return { index, name };
}
