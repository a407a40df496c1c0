import type { ColumnProfile, NumberProfile } from "../profile/column.ts";
import { tidy } from "../profile/numbers.ts";
import type { Grouping, TimeUnit } from "./plan.ts";

const units: Readonly<Record<string, TimeUnit | undefined>> = {
  year: "year",
  quarter: "quarter",
  month: "month",
  week: "week",
  day: "day",
  hour: "hour",
  weekday: "day of the week",
  "day of week": "day of the week",
  "day of the week": "day of the week",
  "month of year": "month of the year",
  "month of the year": "month of the year",
  season: "month of the year",
  "hour of day": "hour of the day",
  "hour of the day": "hour of the day",
};

const dayLength = 86_400_000;
const maxPoints = 2000;

/** "Month", "months", "day of the week", "month of order_date", "time": a unit, and the column it applies to. */
export function unitOf(words: string): { readonly unit: TimeUnit | undefined; readonly of?: string } | undefined {
  const text = words.toLowerCase().replace(/^(the|each|every|calendar) /, "");
  if (/^(time|dates?|timeline)$/.test(text)) return { unit: undefined };
  const whole = units[text] ?? units[text.replace(/s$/, "")];
  if (whole !== undefined) return { unit: whole };
  const [, word = "", of] = /^(\w+) of (?:the )?(.+)$/.exec(text) ?? [];
  const unit = units[word.replace(/s$/, "")];
  return unit === undefined || of === undefined ? undefined : { unit, of };
}

/** Groups along a column of dates; without a unit, as fine as a chart can show. */
export function timeGrouping(column: ColumnProfile, unit: TimeUnit | undefined, notes: string[]): Grouping {
  const { dates } = column;
  if (dates === undefined) throw new Error(`${column.name} holds no dates`);
  const days = (dates.max - dates.min) / dayLength;
  const chosen = unit ?? finest(column, days);
  if (unit === undefined && chosen !== "instant" && chosen !== "day" && dates.format !== "year") {
    notes.push(`${column.name} has too many points for one chart, so they are put together by ${chosen}.`);
  }
  if (chosen === "month" && days > 366) {
    notes.push("Months are those of the calendar, year by year; say “by month of the year” to put the years together.");
  }
  if (dates.ambiguous)
    notes.push(`Nothing in ${column.name} settles whether the month or the day comes first; I took the month.`);
  const along = unit === undefined ? chosen : coarse(chosen, days);
  if (along !== chosen) notes.push(`By ${chosen} would be too many points for one chart, so this is by ${along}.`);
  return { kind: "time", column: { index: column.index, name: column.name }, format: dates.format, unit: along };
}

/** Days that a unit lasts, finest first. */
const lengths: readonly (readonly [TimeUnit, number])[] = [
  ["hour", 1 / 24],
  ["day", 1],
  ["week", 7],
  ["month", 30],
  ["quarter", 91],
  ["year", 365],
];

/** The unit, or the next longer one with which the points still fit on a chart. */
function coarse(unit: TimeUnit, days: number): TimeUnit {
  const from = lengths.findIndex(([name]) => name === unit);
  if (from === -1) return unit;
  return lengths.slice(from).find(([, length]) => days / length <= maxPoints)?.[0] ?? "year";
}

function finest({ type, dates, distinct, distinctExact }: ColumnProfile, days: number): TimeUnit {
  if (dates?.format === "year") return "year";
  if (distinctExact && distinct <= maxPoints) return type === "datetime" ? "instant" : "day";
  if (type === "datetime" && days * 24 <= maxPoints) return "hour";
  if (days <= maxPoints) return "day";
  return days <= maxPoints * 30 ? "month" : "year";
}

/** About `count` intervals of a round length from the least to the greatest value; a few extreme values do not stretch them. */
export function binsOf(column: ColumnProfile, { min, max }: NumberProfile, count: number): Grouping {
  const rough = (max - min) / count || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = tidy((([1, 2, 2.5, 5, 10] as const).find((factor) => factor * power >= rough * 0.999) ?? 10) * power);
  const whole = column.type === "integer" ? Math.max(1, Math.ceil(step)) : step;
  return {
    kind: "bin",
    column: { index: column.index, name: column.name },
    start: tidy(Math.floor(min / whole) * whole),
    step: whole,
  };
}
