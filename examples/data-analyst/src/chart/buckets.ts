import { readNumber } from "../csv/values.ts";
import { dateReaders } from "../profile/column.ts";
import { tidy } from "../profile/numbers.ts";
import type { Filter, Grouping, TimeUnit } from "../question/plan.ts";
import { formatTime } from "../words.ts";

/** The place of a row on an axis. */
export interface Bucket {
  /** Its place: a number in the order of the axis, a name if there is no order. */
  readonly key: string | number;
  readonly label: string;
}

/** Returns the bucket of a cell; `undefined` for a cell that cannot be used. */
export type Bucketing = (text: string) => Bucket | undefined;

const dayLength = 86_400_000;
const monthNames = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const dayNames = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];

export function bucketing(group: Grouping, decimalComma: boolean): Bucketing {
  switch (group.kind) {
    case "value":
      return (text) => {
        const key = group.numeric ? readNumber(text, decimalComma) : text.trim();
        return key === undefined ? undefined : { key, label: String(key) };
      };
    case "bin":
      return (text) => {
        const value = readNumber(text, decimalComma);
        if (value === undefined) return undefined;
        // Rounding keeps a value that lies on an edge from falling into the bin below it.
        const place = Math.floor(tidy((value - group.start) / group.step));
        const start = tidy(group.start + place * group.step);
        return { key: start, label: `${start} to ${tidy(start + group.step)}` };
      };
    case "time": {
      const read = dateReaders[group.format];
      return (text) => {
        const time = read(text);
        return time === undefined ? undefined : timeBucket(time, group.unit);
      };
    }
  }
}

function timeBucket(time: number, unit: TimeUnit): Bucket {
  const at = new Date(time);
  const [year, month] = [at.getUTCFullYear(), at.getUTCMonth()];
  const day = Math.floor(time / dayLength) * dayLength;
  switch (unit) {
    case "year":
      return { key: start(year, 0), label: String(year) };
    case "quarter":
      return { key: start(year, month - (month % 3)), label: `${year}-Q${Math.floor(month / 3) + 1}` };
    case "month":
      return { key: start(year, month), label: `${year}-${String(month + 1).padStart(2, "0")}` };
    case "week": {
      const monday = day - ((at.getUTCDay() + 6) % 7) * dayLength;
      return { key: monday, label: formatTime(monday) };
    }
    case "day":
      return { key: day, label: formatTime(day) };
    case "hour": {
      const hour = Math.floor(time / 3_600_000) * 3_600_000;
      return { key: hour, label: new Date(hour).toISOString().slice(0, 16) };
    }
    case "instant":
      return { key: time, label: at.toISOString() };
    case "month of the year":
      return { key: month, label: monthNames[month] ?? "" };
    case "day of the week": {
      const place = (at.getUTCDay() + 6) % 7;
      return { key: place, label: dayNames[place] ?? "" };
    }
    case "hour of the day":
      return { key: at.getUTCHours(), label: `${String(at.getUTCHours()).padStart(2, "0")}:00` };
  }
}

function start(year: number, month: number): number {
  return new Date(0).setUTCFullYear(year, month, 1);
}

/** Whether a row is one of the requested rows. */
export function filtering(filter: Filter | undefined): (row: readonly string[]) => boolean {
  if (filter === undefined) return () => true;
  const { index } = filter.column;
  if (filter.kind === "value") {
    const value = filter.value.toLowerCase();
    return (row) => (row[index] ?? "").trim().toLowerCase() === value;
  }
  const read = dateReaders[filter.format];
  return (row) => {
    const time = read(row[index] ?? "");
    return time !== undefined && new Date(time).getUTCFullYear() === filter.year;
  };
}
