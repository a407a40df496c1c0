import type { JsonObject } from "@parley/node";
import { countOf, formatNumber, markdownTable } from "../words.ts";
import { isPoints, type Group, type Grouped, type Numbers } from "./collect.ts";

/** What a chart shows, for programs. */
export function chartData(table: string, numbers: Numbers): JsonObject {
  const { rowsRead, rowsUsed, plan } = numbers;
  const split = plan.split === undefined ? {} : { series: plan.split.name };
  const head = { title: plan.title, table, ...split };
  const read = { rowsRead, rowsUsed, notes: notesOf(numbers) };
  if (isPoints(numbers)) {
    const { x, y } = numbers.plan;
    return {
      ...head,
      kind: "points",
      x: x.name,
      y: y.name,
      points: numbers.points.map((point) => ({ ...point })),
      ...read,
    };
  }
  const { group, measures, mark } = numbers.plan;
  return {
    ...head,
    kind: group === undefined ? "number" : mark,
    ...(group === undefined ? {} : { by: group.column.name, ...(group.kind === "time" ? { unit: group.unit } : {}) }),
    measures: measures.map(({ aggregate, column, label }) => {
      return { label, aggregate, ...(column === undefined ? {} : { column: column.name }) };
    }),
    groups: numbers.groups.map(({ label, series, rows, values }) => ({
      group: label,
      ...(series === undefined ? {} : { series }),
      rows,
      values: Object.fromEntries(measures.map((measure, index) => [measure.label, values[index] ?? null])),
    })),
    groupsOmitted: numbers.groupsOmitted,
    ...read,
  };
}

/** Notes that a reader of the chart needs. */
function notesOf(numbers: Numbers): readonly string[] {
  const { plan, rowsRead, rowsUsed } = numbers;
  const notes = [...plan.notes];
  const left = rowsRead - rowsUsed;
  if (plan.filter !== undefined)
    notes.push(`${formatNumber(rowsUsed)} of ${countOf(rowsRead, "row")} are part of this.`);
  else if (left > 0) notes.push(`Left out: ${countOf(left, "row")} without a usable value.`);
  if (isPoints(numbers)) {
    const shown = numbers.points.length;
    if (shown < rowsUsed) notes.push(`The points are a random sample of ${formatNumber(shown)} rows.`);
    return notes;
  }
  const { groupsOmitted, seriesOmitted } = numbers;
  if (groupsOmitted > 0) notes.push(`Left out: ${countOf(groupsOmitted, "more group")}.`);
  if (seriesOmitted > 0)
    notes.push(`Left out: ${formatNumber(seriesOmitted)} more series than the ${numbers.series.length} largest.`);
  if (numbers.approximate) notes.push("Medians of many rows are those of a random sample.");
  return notes;
}

/** The answer in words. */
export function chartText(numbers: Numbers): string {
  const sentence = isPoints(numbers) ? `${countOf(numbers.points.length, "point")}.` : summary(numbers);
  return [`${numbers.plan.title}.`, sentence, ...notesOf(numbers)].join(" ");
}

function summary({ plan: { group, measures }, groups, groupsOmitted }: Grouped): string {
  const known = groups.filter(({ values }) => typeof values[0] === "number");
  const [first] = known;
  if (first === undefined) return "There are no values to show.";
  if (group === undefined) {
    return measures.map(({ label }, index) => `The ${label} is ${formatNumber(first.values[index] ?? NaN)}.`).join(" ");
  }
  if (measures.length > 1) return `${countOf(new Set(known.map(({ key }) => key)).size, "group")}.`;
  const highest = known.reduce((best, item) => (valueOf(item) > valueOf(best) ? item : best), first);
  const lowest = known.reduce((best, item) => (valueOf(item) < valueOf(best) ? item : best), first);
  if (highest === lowest) return `${describe(first)}.`;
  if (group.kind === "bin") return `Highest: ${describe(highest)}.`;
  return `Highest: ${describe(highest)}; lowest${groupsOmitted > 0 ? " of those shown" : ""}: ${describe(lowest)}.`;
}

function valueOf({ values }: Group): number {
  return values[0] ?? 0;
}

function describe(group: Group): string {
  const series = group.series === undefined ? "" : `, ${group.series}`;
  return `${group.label}${series} (${formatNumber(valueOf(group))})`;
}

const tableRows = 100;

/** The numbers as a table to read, for callers who cannot show a picture. */
export function chartTable(numbers: Numbers): string {
  if (isPoints(numbers)) {
    const { x, y } = numbers.plan;
    return markdownTable(
      [x.name, y.name],
      numbers.points.slice(0, tableRows).map((point) => [String(point.x), String(point.y)]),
    );
  }
  const { group, split, measures } = numbers.plan;
  const head = [
    group?.column.name ?? "",
    ...(split === undefined ? [] : [split.name]),
    ...measures.map(({ label }) => label),
  ];
  const rows = numbers.groups
    .slice(0, tableRows)
    .map(({ label, series, values }) => [
      label,
      ...(split === undefined ? [] : [series ?? ""]),
      ...values.map((value) => (value === null ? "" : formatNumber(value))),
    ]);
  return markdownTable(head, rows);
}
