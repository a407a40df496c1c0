import type { ColumnProfile } from "../profile/column.ts";
import type { Profile } from "../profile/profile.ts";
import { formatNumber } from "../words.ts";
import { Asking } from "./ask.ts";
import { findColumns } from "./columns.ts";
import { aggregateNames, isDate, isNumber, isSeries, kindName, mayGroup, ref } from "./kinds.ts";
import { Lookup, type Dimension, type Measured } from "./lookup.ts";
import type { Answers, Ask, ColumnRef, Filter, GroupPlan, Grouping, Measure, Plan } from "./plan.ts";
import type { ChartRequest, MeasureWords } from "./request.ts";
import { binsOf, timeGrouping } from "./time.ts";

const maxGroups = 1000;
const fewIntegers = 31;
const histogramBins = 30;
const groupBins = 20;
/** Columns whose sum says more than their average. */
const additive = /^(counts?|totals?|number|num|qty|quantity|amount|sales|revenue|births|deaths|cases|votes|units)$/i;
const rows: Measure = { aggregate: "count", label: "number of rows" };

/** The plan for a question about a table, or what to ask the user first. The same answers give the same plan. */
export function resolveChart(request: ChartRequest, profile: Profile, answers: Answers): Plan | Ask {
  const lookup = new Lookup(profile, answers);
  try {
    const plan = planOf(request, lookup);
    return { ...plan, notes: lookup.notes };
  } catch (error) {
    if (error instanceof Asking) return error.ask;
    throw error;
  }
}

function planOf(request: ChartRequest, lookup: Lookup): Plan {
  const filter = request.filter === undefined ? undefined : lookup.filter(request.filter);
  if (request.distribution) return distributionOf(request, filter, lookup);
  const { measures, by } = sidesOf(request, lookup);
  const measured = measures.flatMap((measure) => lookup.measures(measure));
  const dimension = by === undefined ? missingDimension(request, measured, lookup) : lookup.dimension(by, measured);
  if (dimension === "distribution") return spread(measured[0]?.column, filter, undefined, lookup);
  const split = request.split === undefined ? undefined : lookup.series(request.split);
  return (
    pointsOf(request, measured, dimension, split, filter) ??
    groupsOf(request, measured, dimension, split, filter, lookup)
  );
}

/** "Top 10 origins by count" names the groups first, and then their measure. */
function sidesOf(
  { measures, by, limit }: ChartRequest,
  lookup: Lookup,
): { measures: readonly MeasureWords[]; by: string | undefined } {
  const [first] = measures;
  const turned = limit?.leads === true && by !== undefined && first !== undefined && first.aggregate === undefined;
  const [named] = turned ? findColumns(first.words, lookup.columns) : [];
  if (!turned || named === undefined || isNumber(named)) return { measures, by };
  return { measures: [limit.by ?? { said: by, words: by }], by: first.words };
}

/** A point for each row, if two columns of numbers are compared. */
function pointsOf(
  { mark }: ChartRequest,
  measured: readonly Measured[],
  dimension: Dimension | undefined,
  split: ColumnRef | undefined,
  filter: Filter | undefined,
): Plan | undefined {
  const [only, ...others] = measured;
  const wanted = mark === "scatter" || (mark === undefined && only?.aggregate === undefined);
  const [x, y] = [dimension?.column, only?.column];
  if (!wanted || others.length > 0 || x === undefined || y === undefined || !isNumber(x) || !isNumber(y))
    return undefined;
  const title = titleOf(`${y.name} against ${x.name}`, split, filter);
  return { kind: "points", x: ref(x), y: ref(y), ...optional({ split, filter }), title, notes: [] };
}

function groupsOf(
  { mark: asked, limit }: ChartRequest,
  measured: readonly Measured[],
  dimension: Dimension | undefined,
  split: ColumnRef | undefined,
  filter: Filter | undefined,
  lookup: Lookup,
): GroupPlan {
  if (asked === "scatter") lookup.notes.push("Points need two columns of numbers, so this is another kind of chart.");
  const group = dimension && (dimension.grouping ?? groupingOf(dimension.column, groupBins, lookup));
  // Words cannot be added up, but their frequencies can be shown.
  const [only] = measured;
  const words = measured.length === 1 && only?.aggregate === undefined && only?.column;
  const implied =
    words && split === undefined && isSeries(words) && words.index !== group?.column.index ? words : undefined;
  const measures =
    implied === undefined ? measured.map((one, index) => measureOf(one, group, split, index === 0, lookup)) : [rows];
  let series = split ?? (implied && ref(implied));
  if (series !== undefined && measures.length > 1) {
    lookup.notes.push(`With several columns I cannot also split by ${series.name}, so I left that out.`);
    series = undefined;
  }
  const along = group?.kind === "time" && !group.unit.includes(" of the ");
  const drawn = along && measures.every(({ aggregate }) => aggregate !== "count") ? "line" : "bar";
  const title =
    measures.map(({ label }) => label).join(" and ") + (group === undefined ? "" : ` by ${groupName(group)}`);
  return {
    kind: "groups",
    measures,
    ...optional({ group, split: series, filter }),
    mark: asked === undefined || asked === "scatter" ? drawn : asked,
    ...(limit === undefined ? {} : { limit: { count: Math.max(1, limit.count), from: limit.from } }),
    title: titleOf(capital(title), series, filter),
    notes: [],
  };
}

function measureOf(
  { aggregate, column }: Measured,
  group: Grouping | undefined,
  split: ColumnRef | undefined,
  first: boolean,
  lookup: Lookup,
): Measure {
  if (column === undefined) return rows;
  const counts = aggregate === "count" || (aggregate === undefined && column.index === group?.column.index);
  if (counts) return { aggregate: "count", column: ref(column), label: `count of ${column.name}` };
  if (!isNumber(column)) {
    const why = aggregate === undefined ? "nothing to put on an axis" : `no ${aggregateNames[aggregate]} of those`;
    const prompt = `The column ${column.name} holds ${kindName(column)}: there is ${why}. Shall I count rows, or take a column of numbers?`;
    const other = lookup.insteadOf(column, prompt);
    return other === undefined ? rows : measureOf({ aggregate, column: other }, group, split, first, lookup);
  }
  if (aggregate !== undefined)
    return { aggregate, column: ref(column), label: `${aggregateNames[aggregate]} ${column.name}` };
  // With one row for each date there is nothing to combine.
  if (split === undefined && group?.kind === "time" && isUnique(group, lookup))
    return { aggregate: "mean", column: ref(column), label: column.name };
  const usual = additive.test(column.name) ? "sum" : "mean";
  if (first) {
    const other = aggregateNames[usual === "sum" ? "mean" : "sum"];
    lookup.notes.push(
      `You did not say how to combine values, so this is the ${aggregateNames[usual]}; say “${other} ${column.name}” for another.`,
    );
  }
  return { aggregate: usual, column: ref(column), label: `${aggregateNames[usual]} ${column.name}` };
}

function isUnique({ column, unit }: Extract<Grouping, { kind: "time" }>, lookup: Lookup): boolean {
  const known = lookup.columns.find(({ index }) => index === column.index);
  return (
    (unit === "instant" || unit === "day") &&
    known?.type !== "datetime" &&
    known?.distinctExact === true &&
    known.distinct === known.count
  );
}

/** A measure alone: one number if a number was requested; a chart needs something to go along. */
function missingDimension(
  request: ChartRequest,
  measured: readonly Measured[],
  lookup: Lookup,
): Dimension | "distribution" | undefined {
  const [only] = measured;
  const counted = measured.length > 0 && measured.every(({ aggregate }) => aggregate !== undefined);
  if (!request.picture && counted) return undefined;
  const single = measured.length === 1 ? only?.column : undefined;
  if (single !== undefined && !isNumber(single) && !isDate(single)) return "distribution";
  const groups = lookup.groupable(measured).slice(0, 9);
  const what = measured.map(({ column }) => column?.name ?? "the number of rows").join(" and ");
  const alone = single === undefined ? [] : [{ value: " distribution", label: `the distribution of ${single.name}` }];
  const [answer] = lookup.answer("by:", {
    prompt: what === "" ? "What shall I chart, and by what? Name a column to count rows by." : `Chart ${what} by what?`,
    choices: [...groups.map(({ name }) => ({ value: name, label: `by ${name}` })), ...alone],
  });
  const column = groups.find(({ name }) => name === answer);
  if (column === undefined) return "distribution";
  return { column };
}

function distributionOf(request: ChartRequest, filter: Filter | undefined, lookup: Lookup): Plan {
  const measured = request.measures.flatMap((measure) => lookup.measures(measure));
  const words = request.by ?? request.split;
  const split = words === undefined ? undefined : lookup.series(words);
  if (measured.length > 1)
    lookup.notes.push(`One distribution at a time: this is that of ${measured[0]?.column?.name ?? "the first"}.`);
  return spread(measured[0]?.column, filter, split, lookup);
}

/** How many rows hold which value. */
function spread(
  column: ColumnProfile | undefined,
  filter: Filter | undefined,
  split: ColumnRef | undefined,
  lookup: Lookup,
): GroupPlan {
  const of = column ?? lookup.choose("distribution:", "The distribution of which column?", lookup.columns);
  const group = groupingOf(of, histogramBins, lookup);
  const title = titleOf(`Distribution of ${group.column.name}`, split, filter);
  return { kind: "groups", measures: [rows], group, ...optional({ split, filter }), mark: "bar", title, notes: [] };
}

function groupingOf(column: ColumnProfile, bins: number, lookup: Lookup): Grouping {
  if (isDate(column)) return timeGrouping(column, undefined, lookup.notes);
  const { numbers, distinct, distinctExact } = column;
  const few = distinctExact && distinct <= fewIntegers && column.type === "integer";
  if (numbers !== undefined && !few) return binsOf(column, numbers, bins);
  if (distinctExact && distinct <= maxGroups)
    return { kind: "value", column: ref(column), numeric: numbers !== undefined };
  const amount = `${distinctExact ? "" : "more than "}${formatNumber(distinct)}`;
  const prompt = `The column ${column.name} has ${amount} different values: a chart would need a mark for each. By which column shall I group instead?`;
  const others = lookup.columns.filter((other) => other !== column && (mayGroup(other) || isNumber(other)));
  return groupingOf(lookup.choose(`instead:${column.name}`, prompt, others), bins, lookup);
}

function groupName(group: Grouping): string {
  if (group.kind !== "time" || group.unit === "instant" || group.unit === "day") return group.column.name;
  return group.unit;
}

function titleOf(title: string, split: ColumnRef | undefined, filter: Filter | undefined): string {
  const parts = [title];
  if (split !== undefined) parts.push(`for each ${split.name}`);
  if (filter?.kind === "year") parts.push(`in ${filter.year}`);
  if (filter?.kind === "value") parts.push(`where ${filter.column.name} is ${filter.value}`);
  return parts.join(", ");
}

function capital(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}

type Defined<T> = { [Key in keyof T]?: Exclude<T[Key], undefined> };

/** Without the members that are undefined. */
function optional<T extends Readonly<Record<string, unknown>>>(members: T): Defined<T> {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as Defined<T>;
}
