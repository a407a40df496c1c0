import type { TopLevelSpec } from "vega-lite";
import type { GroupPlan, Grouping } from "../question/plan.ts";
import { isPoints, type Grouped, type Numbers, type Points } from "./collect.ts";

/** A chart in Vega-Lite. Fields have our own names: Vega-Lite could read names of columns as paths or expressions. */

const width = 640;
const height = 360;
const maxTitle = 90;
const single = "#2b6cb0";
const font = "Helvetica, Arial, sans-serif";

const config = {
  background: "white",
  padding: 16,
  font,
  title: { anchor: "start", fontSize: 17, fontWeight: 600, subtitleFontSize: 12, subtitleColor: "#666", offset: 14 },
  axis: {
    labelFontSize: 11,
    titleFontSize: 12,
    titleFontWeight: 500,
    titlePadding: 8,
    gridColor: "#e8e8e8",
    domainColor: "#999",
    tickColor: "#999",
    labelLimit: 160,
  },
  axisBand: { grid: false },
  legend: { labelFontSize: 11, titleFontSize: 12, titleFontWeight: 500 },
  view: { stroke: null },
} as const;

export function specOf(numbers: Numbers, subtitle: string): TopLevelSpec {
  const { plan } = numbers;
  const title = { text: plan.title.length > maxTitle ? `${plan.title.slice(0, maxTitle - 1)}…` : plan.title, subtitle };
  const body = isPoints(numbers) ? pointsOf(numbers) : groupsOf(numbers);
  return { config, title, width, height, ...body } as TopLevelSpec;
}

function pointsOf({ plan: { x, y, split }, points }: Points): object {
  return {
    data: { values: points },
    // A description of each single point would be most of the file.
    mark: {
      type: "point",
      filled: true,
      aria: false,
      size: 28,
      opacity: 0.55,
      ...(split === undefined ? { color: single } : {}),
    },
    encoding: {
      x: { field: "x", type: "quantitative", title: x.name, scale: { zero: false } },
      y: { field: "y", type: "quantitative", title: y.name, scale: { zero: false } },
      ...(split === undefined ? {} : { color: colour(split.name) }),
    },
  };
}

function colour(title: string | null, names?: readonly string[]): object {
  return {
    field: "series",
    type: "nominal",
    title,
    scale: { scheme: "tableau10" },
    ...(names === undefined ? {} : { sort: names }),
  };
}

/** What the shapes of a chart of groups have in common. */
interface Drawing {
  readonly values: readonly Value[];
  readonly mark: GroupPlan["mark"];
  readonly group: Grouping | undefined;
  /** The axis of the values. */
  readonly amount: object;
  /** Channels and settings of the colours, empty for a single colour. */
  readonly color: object;
  readonly fill: object;
  /** Names of the colours if their bars stand side by side, because their sum has no meaning. */
  readonly beside: readonly string[] | undefined;
}

interface Value {
  readonly at: string | number;
  readonly label: string;
  readonly value: number;
  readonly series?: string;
}

function groupsOf(numbers: Grouped): object {
  const { measures, group, split, mark, limit } = numbers.plan;
  const labels = measures.map(({ label }) => label);
  const many = measures.length > 1;
  const names = many ? labels : numbers.series;
  const values = numbers.groups.flatMap(({ key, label, series, values: found }) =>
    found.flatMap((value, index) => {
      if (value === null) return [];
      const name = many ? labels[index] : series;
      return [{ at: key, label, value, ...(name === undefined ? {} : { series: name, rank: names.indexOf(name) }) }];
    }),
  );
  const coloured = many || split !== undefined;
  const adds = !many && measures.every(({ aggregate }) => aggregate === "count" || aggregate === "sum");
  const stack = coloured && mark !== "line" ? { stack: adds ? "zero" : null } : {};
  const drawing: Drawing = {
    values,
    mark,
    group,
    amount: { field: "value", type: "quantitative", title: labels.length === 1 ? labels[0] : null, ...stack },
    color: {
      ...(coloured ? { color: colour(many ? null : (split?.name ?? null), names) } : {}),
      // The largest stands at the bottom of a stack and on top of the legend.
      ...(coloured && adds && mark !== "line" ? { order: { field: "rank" } } : {}),
    },
    fill: coloured ? {} : { color: single },
    beside: coloured && !adds && mark === "bar" ? names : undefined,
  };
  const scaled = limit === undefined && drawing.beside === undefined;
  if (scaled && group?.kind === "time" && isAlong(group)) return timeline(drawing, group);
  if (scaled && group?.kind === "bin") return histogram(drawing, group);
  return places(drawing);
}

/** Groups along an axis of time. */
function timeline({ values, mark, amount, color, fill }: Drawing, group: Grouping): object {
  const dense = new Set(values.map(({ at }) => at)).size;
  const shape =
    mark === "bar"
      ? { width: Math.max(1, Math.min(40, (width / Math.max(dense, 1)) * 0.8)) }
      : {
          ...(dense <= 60 ? { point: true } : {}),
          ...(mark === "area" ? { opacity: 0.6 } : { strokeWidth: dense > 400 ? 1 : 2 }),
        };
  const x = { field: "at", type: "temporal", scale: { type: "utc" }, title: axisTitle(group) };
  const y = { ...amount, scale: { zero: mark !== "line" } };
  return { data: { values }, mark: { type: mark, ...fill, ...shape }, encoding: { x, y, ...color } };
}

/** Groups that are intervals of a column of numbers. */
function histogram(
  { values, amount, color, fill }: Drawing,
  { step, column }: Extract<Grouping, { kind: "bin" }>,
): object {
  const binned = values.map((value) => ({ ...value, end: Number(value.at) + step }));
  const x = { field: "at", bin: { binned: true, step }, type: "quantitative", title: column.name };
  return {
    data: { values: binned },
    mark: { type: "bar", ...fill },
    encoding: { x, x2: { field: "end" }, y: amount, ...color },
  };
}

/** Groups side by side, each with its name: upright if they have an order, lying if names are many or long. */
function places({ values, mark, group, amount, color, fill, beside }: Drawing): object {
  const labels = [...new Set(values.map(({ label }) => label))];
  const ordered = group !== undefined && (group.kind !== "value" || group.numeric);
  const longest = Math.max(0, ...labels.map((label) => label.length));
  const place = { field: "label", type: "nominal", sort: labels, title: group === undefined ? null : axisTitle(group) };
  const shift = beside && { field: "series", sort: beside };
  if (mark === "bar" && !ordered && (labels.length > 12 || longest > 10)) {
    return {
      height: { step: beside ? 10 : 20 },
      data: { values },
      mark: { type: mark, ...fill },
      encoding: { y: { ...place, axis: { labelLimit: 220 } }, x: amount, ...(shift && { yOffset: shift }), ...color },
    };
  }
  const labelAngle = labels.length > 16 || (labels.length > 8 && longest > 6) ? -45 : 0;
  return {
    data: { values },
    mark: { type: mark, ...fill, ...(mark === "bar" ? {} : { point: true }) },
    encoding: {
      x: { ...place, axis: { labelAngle, labelOverlap: true } },
      y: amount,
      ...(shift && { xOffset: shift }),
      ...color,
    },
  };
}

/** Whether the groups are points of a calendar, so the axis shows time. */
function isAlong(group: Grouping): boolean {
  return group.kind === "time" && !group.unit.includes(" of the ");
}

function axisTitle(group: Grouping): string {
  const { name } = group.column;
  if (group.kind !== "time" || group.unit === "instant" || group.unit === "day" || group.unit === name.toLowerCase())
    return name;
  return `${name} (${group.unit})`;
}
