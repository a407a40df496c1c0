import type { JsonObject } from "@parley/node";
import { countOf, formatNumber, formatTime, cell } from "../words.ts";
import type { ColumnProfile } from "./column.ts";
import type { Profile } from "./profile.ts";

const maxChunks = 20;
const shownValues = 5;

/** The profile as Markdown, in pieces that can be sent one after the other. */
export function profileText(profile: Profile): readonly string[] {
  const { columns } = profile;
  const size = Math.ceil(columns.length / maxChunks);
  const chunks: string[] = [`# ${cell(profile.table)}\n\n${headline(profile)}\n\n`];
  for (let at = 0; at < columns.length; at += size) {
    chunks.push(
      columns
        .slice(at, at + size)
        .map(columnText)
        .join(""),
    );
  }
  return chunks;
}

/** The shape of the table in a sentence or two. */
export function headline({ rows, ragged, header, columns }: Profile): string {
  return [
    `${countOf(rows, "row")}, ${countOf(columns.length, "column")}.`,
    ...(header ? [] : ["There is no row of names, so the columns are numbered."]),
    ...(ragged === 0
      ? []
      : [`${countOf(ragged, "row")} had too few or too many fields and ${ragged === 1 ? "was" : "were"} made to fit.`]),
  ].join(" ");
}

function columnText(column: ColumnProfile): string {
  const facts = [
    column.type,
    ...factsOf(column),
    ...(column.missing === 0 ? [] : [`${formatNumber(column.missing)} missing`]),
    ...(column.invalid === 0 ? [] : [`${formatNumber(column.invalid)} of another kind, left out`]),
  ];
  return `- **${cell(column.name)}**: ${facts.join("; ")}\n`;
}

function factsOf({ type, numbers, dates, distinct, distinctExact, top, count }: ColumnProfile): readonly string[] {
  const different = `${distinctExact ? "" : "more than "}${formatNumber(distinct)} different values`;
  if (numbers !== undefined) {
    const { min, max, mean, stddev, q25, median, q75, quantilesExact } = numbers;
    const about = quantilesExact ? "" : "about ";
    return [
      `${formatNumber(min)} to ${formatNumber(max)}`,
      `mean ${formatNumber(mean)}, standard deviation ${formatNumber(stddev)}`,
      `quartiles ${about}${[q25, median, q75].map(formatNumber).join(", ")}`,
    ];
  }
  if (dates !== undefined) {
    const guess = dates.ambiguous ? ["read with the month first, which nothing in it settles"] : [];
    const show = dates.format === "year" ? (time: number) => String(new Date(time).getUTCFullYear()) : formatTime;
    return [`${show(dates.min)} to ${show(dates.max)}`, different, ...guess];
  }
  if (count === 0) return [];
  // A value that occurs once describes nothing about a column.
  const frequent = top.filter((entry) => entry.count > 1 || type !== "text").slice(0, shownValues);
  const list = frequent.map((entry) => `${cell(entry.value, 30)} (${formatNumber(entry.count)})`).join(", ");
  return [different, ...(list === "" ? [] : [`most frequent ${list}`])];
}

/** The profile for programs. */
export function profileData({ table, rows, ragged, header, columns }: Profile): JsonObject {
  return { table, rows, ragged, header, columns: columns.map(columnData) };
}

function columnData({ numbers, dates, top, index: _, ...column }: ColumnProfile): JsonObject {
  return {
    ...column,
    ...(numbers === undefined ? {} : { numbers: { ...numbers } }),
    ...(dates === undefined
      ? {}
      : { dates: { ...dates, min: new Date(dates.min).toISOString(), max: new Date(dates.max).toISOString() } }),
    ...(numbers === undefined && dates === undefined ? { top: top.slice(0, 10).map((entry) => ({ ...entry })) } : {}),
  };
}
