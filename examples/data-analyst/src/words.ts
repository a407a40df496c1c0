/** Numbers, dates and lists as text. */

const whole = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });
const precise = new Intl.NumberFormat("en-US", { maximumSignificantDigits: 4 });

/** `1,461`, `26.14`, `0.003142`. */
export function formatNumber(value: number): string {
  return Math.abs(value) >= 1000 || Number.isInteger(value) ? whole.format(value) : precise.format(value);
}

/** `2012-01-31`, with the time if there is one. */
export function formatTime(time: number): string {
  const text = new Date(time).toISOString();
  return text.endsWith("T00:00:00.000Z") ? text.slice(0, 10) : `${text.slice(0, 10)} ${text.slice(11, 16)}`;
}

/** `1 row`, `2,922 rows`. */
export function countOf(count: number, noun: string): string {
  return `${formatNumber(count)} ${noun}${count === 1 ? "" : "s"}`;
}

/** Text from a table for use inside Markdown: on one line, shortened, with markup escaped. */
export function cell(text: string, limit = 60): string {
  const line = text.replaceAll(/\s+/g, " ").trim();
  const short = line.length > limit ? `${line.slice(0, limit - 1)}…` : line;
  return short.replaceAll(/[\\`*_|<>[\]]/g, String.raw`\$&`);
}

/** A Markdown table. */
export function markdownTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string => `| ${cells.map((text) => cell(text)).join(" | ")} |`;
  return [line(head), `|${head.map(() => " --- |").join("")}`, ...rows.map(line)].join("\n");
}
