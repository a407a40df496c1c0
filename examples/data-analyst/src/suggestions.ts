import type { ColumnProfile } from "./profile/column.ts";
import type { Profile } from "./profile/profile.ts";

/** Questions that make sense for a table. */
export function suggestionsFor({ columns }: Profile): readonly string[] {
  const numbers = columns.filter((column) => column.numbers !== undefined && column.distinct > 1);
  const date = columns.find((column) => column.dates !== undefined);
  const category = columns.find((column) => column.type === "category" || column.type === "boolean");
  const [first, second] = numbers;
  const found = [
    ...(first !== undefined && date !== undefined ? [`chart average ${first.name} by ${spanOf(date)}`] : []),
    ...(first !== undefined && category !== undefined
      ? [`chart average ${(second ?? first).name} by ${category.name}`]
      : []),
    ...(category === undefined ? [] : [`bar chart of count by ${category.name}`]),
    ...(first === undefined ? [] : [`show the distribution of ${first.name}`]),
    ...(first !== undefined && second !== undefined ? [`plot ${second.name} against ${first.name}`] : []),
    "show the first 10 rows",
  ];
  return found.slice(0, 3);
}

function spanOf({ name, dates }: ColumnProfile): string {
  const days = dates === undefined ? 0 : (dates.max - dates.min) / 86_400_000;
  return days > 90 && dates?.format !== "year" ? "month" : name;
}
