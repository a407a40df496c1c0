/** What was asked, judged only by the words: no column has been looked up yet. */

export type Aggregate = "mean" | "median" | "sum" | "count" | "min" | "max";
export type Mark = "bar" | "line" | "area" | "scatter";

export interface MeasureWords {
  /** All of it, since a column may be called "max temp" or "count". */
  readonly said: string;
  readonly aggregate?: Aggregate;
  /** Words for a column; empty where rows are counted. */
  readonly words: string;
}

export type Request =
  | { readonly kind: "help" }
  | { readonly kind: "profile" }
  | { readonly kind: "rows"; readonly count: number }
  | ChartRequest
  /** Not understood. */
  | { readonly kind: "unknown" };

export interface ChartRequest {
  readonly kind: "chart";
  readonly measures: readonly MeasureWords[];
  readonly by?: string;
  readonly split?: string;
  readonly filter?: string;
  readonly mark?: Mark;
  readonly distribution: boolean;
  /** Whether a picture was requested; otherwise one number may be the answer. */
  readonly picture: boolean;
  readonly limit?: Limit;
}

export interface Limit {
  readonly count: number;
  readonly from: "top" | "bottom";
  /** Whether the words stood first, as in "top 10 origins by count", where the two sides are the other way round. */
  readonly leads: boolean;
  /** The text after "by", read as a measure. */
  readonly by?: MeasureWords;
}

const aggregates: Readonly<Record<string, Aggregate>> = {
  average: "mean",
  avg: "mean",
  mean: "mean",
  median: "median",
  sum: "sum",
  total: "sum",
  count: "count",
  number: "count",
  minimum: "min",
  min: "min",
  lowest: "min",
  maximum: "max",
  max: "max",
  highest: "max",
};

// A column may be called "a": before a relation it is not an article.
const polite =
  "(?:a|i)(?! (?:by|per|over|against|versus|vs|and)\\b|$)|please|can|could|would|you|i'd|i'll|want|need|like|to|see|let|me|us|show|give|draw|make|create|plot|chart|graph|diagram|visuali[sz]e|display|render|compare|what|what's|whats|is|are|was|were|how|does|do|the|an|of|for|all|my|this|that|our|with|in";
const lead = new RegExp(String.raw`^(?:${polite})\b[\s:,]*`);
const pictured = /\b(chart|plot|graph|draw|diagram|visuali[sz]e|histogram|scatter)\b/;
const marks: readonly (readonly [RegExp, Mark])[] = [
  [/\b(bar|column)s?[ -]?(chart|plot|graph|diagram)s?\b( of)?/, "bar"],
  [/\bline[ -]?(chart|plot|graph|diagram)s?\b( of)?/, "line"],
  [/\barea[ -]?(chart|plot|graph|diagram)s?\b( of)?/, "area"],
  [/\bscatter[ -]?(plot|chart|graph|diagram)?s?\b( of)?/, "scatter"],
];
const relation = / (?:by|per|over|across|against|versus|vs\.?|grouped by|for each|for every|by each|as a function of) /;
const separator = /\s*(?:,| and | & | plus )\s*/;
const splitting = / (?:split by|colou?red by|broken down by|stacked by|grouped by|for each|for every|by each) (.+)$/;
const filtering = / (?:where|only for|only|for|in) (?!each |every )(.+?)(?=$| by | per | over )/;
const tops = /\b(top|highest|largest|first|bottom|lowest|smallest|last) (\d{1,4})\b( of)?/;

/** Longest question in characters. */
export const maxQuestion = 500;

/** Reads a question in plain English. */
export function parseQuestion(text: string): Request {
  if (text.length > maxQuestion) return { kind: "unknown" };
  const question = text
    .toLowerCase()
    .replaceAll(/["“”`´]|,? please\b/g, "")
    .replaceAll(/\s+/g, " ")
    .trim()
    .replace(/(?<![.!?\s])[.!?\s]+$/, "");
  if (
    /^\?*$/.test(question) ||
    /^(help|hi|hello|hey|usage|what can you do|what do you do|how does this work)\b/.test(question)
  ) {
    return { kind: "help" };
  }
  return command(question) ?? chartOf(question);
}

function command(question: string): Request | undefined {
  const words = stripLead(question);
  if (/^(columns?|fields?|schema|variables|types|column names)( there| here| names| does it have)?$/.test(words))
    return { kind: "profile" };
  if (relation.test(` ${question} `)) return undefined;
  const rows =
    /^(?:(?:data )?table|preview|head|sample|rows|(?:first )?(\d{1,4}) (?:rows|lines)|first rows)(?: (\d{1,4}))?(?: (?:rows|lines))?$/.exec(
      words,
    );
  if (rows !== null) return { kind: "rows", count: Math.max(1, Math.min(100, Number(rows[1] ?? rows[2] ?? 10))) };
  if (
    /^(profile|describe|summary|summari[sz]e|overview|statistics|stats|analy[sz]e|explore)( (it|this|that|the|table|file|data|dataset|csv|of|columns|please))*$/.test(
      words,
    )
  ) {
    return { kind: "profile" };
  }
  return undefined;
}

function chartOf(question: string): Request {
  let rest = ` ${question} `;
  let picture = pictured.test(rest);
  let mark: Mark | undefined;
  for (const [pattern, name] of marks) {
    if (!pattern.test(rest)) continue;
    rest = rest.replace(pattern, " ");
    [mark, picture] = [name, true];
  }
  const distributed = /\b(distribution|histogram|spread|describe)\b( of| for)?/;
  const distribution = distributed.test(rest);
  rest = ` ${stripLead(rest.replace(distributed, " ").replaceAll(/\s+/g, " ").trim())} `;
  const top = tops.exec(rest);
  const limit: Limit | undefined =
    top === null
      ? undefined
      : {
          count: Number(top[2]),
          from: /^(bottom|lowest|smallest|last)/.test(top[1] ?? "") ? "bottom" : "top",
          leads: top.index <= 1,
        };
  rest = rest.replace(tops, " ").replaceAll(/\s+/g, " ").trimEnd();
  const filter = filtering.exec(rest)?.[1];
  if (filter !== undefined) rest = rest.replace(filtering, "");
  const between = relation.exec(rest);
  const left = between === null ? rest : rest.slice(0, between.index);
  let right = between === null ? "" : rest.slice(between.index + between[0].length);
  let split = splitting.exec(` ${right}`)?.[1];
  if (split !== undefined) right = ` ${right}`.replace(splitting, "").trim();
  const parts = right.split(/ by | per |\s*,\s*| and | & /).filter((part) => part.trim() !== "");
  split ??= parts[1];
  const by = parts[0];
  const measures = left
    .trim()
    .split(separator)
    .map((part) => measureOf(part.trim()))
    .filter((measure) => measure.said !== "");
  // "the average of a and b": the first aggregate applies to all.
  const shared = measures[0]?.aggregate;
  const asked = measures.map((measure) =>
    measure.aggregate === undefined && shared !== undefined ? { ...measure, aggregate: shared } : measure,
  );
  if (asked.length === 0 && by === undefined) return picture || distribution ? chart([]) : { kind: "unknown" };
  return chart(asked);

  function chart(list: readonly MeasureWords[]): ChartRequest {
    return {
      kind: "chart",
      measures: list,
      ...(by === undefined ? {} : { by: by.trim() }),
      ...(split === undefined ? {} : { split: split.trim() }),
      ...(filter === undefined ? {} : { filter: filter.trim() }),
      ...(mark === undefined ? {} : { mark }),
      distribution,
      picture,
      ...(limit === undefined ? {} : { limit: by === undefined ? limit : { ...limit, by: measureOf(by.trim()) } }),
    };
  }
}

/** "the average of temp_max" as an aggregate and the words for a column. */
function measureOf(text: string): MeasureWords {
  const said = stripLead(text);
  if (/^(many )?(rows|records|entries)$/.test(said)) return { said, aggregate: "count", words: "" };
  const [first = "", ...others] = said.split(" ");
  const aggregate = aggregates[first];
  if (aggregate === undefined) return { said, words: said };
  const words = stripLead(others.join(" "));
  return { said, aggregate, words: /^(rows|records|entries)$/.test(words) ? "" : words };
}

function stripLead(text: string): string {
  let rest = text.trim();
  for (let found = lead.exec(rest); found !== null && found[0].length > 0; found = lead.exec(rest))
    rest = rest.slice(found[0].length);
  return rest;
}
