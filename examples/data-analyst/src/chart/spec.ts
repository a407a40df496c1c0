import type { TopLevelSpec } from "vega-lite";
import type { Grouping } from "../question/plan.ts";
import { isPoints, type Grouped, type Numbers, type Points } from "./collect.ts";

/** A chart in Vega-Lite. Fields have names of ours: those of the table's columns could read as paths or expressions. */

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

function groupsOf(numbers: Grouped): object {
  const { plan } = numbers;
  const { measures, group, split, mark } = plan;
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
  const amount = { field: "value", type: "quantitative", title: labels.length === 1 ? labels[0] : null };
  const stacks = measures.every(({ aggregate }) => aggregate === "count" || aggregate === "sum") && !many;
  // The largest stands at the bottom of a stack and on top of the legend.
  const order = stacks && mark !== "line" ? { order: { field: "rank" } } : {};
  const color = coloured ? { color: colour(many ? null : (split?.name ?? null), names), ...order } : {};
  const stack = coloured && mark !== "line" ? { stack: stacks ? "zero" : null } : {};
  const fill = coloured ? {} : { color: single };

  if (group !== undefined && isAlong(group) && plan.limit === undefined) {
    const dense = new Set(values.map(({ at }) => at)).size;
    const shape =
      mark === "bar"
        ? {
            type: "bar",
            ...fill,
            ...(stacks || !coloured ? { opacity: 1 } : { opacity: 0.7 }),
            width: Math.max(1, Math.min(40, (width / Math.max(dense, 1)) * 0.8)),
          }
        : {
            type: mark,
            ...fill,
            interpolate: "linear",
            ...(dense <= 60 ? { point: true } : {}),
            ...(mark === "area" ? { opacity: 0.6 } : { strokeWidth: dense > 400 ? 1 : 2 }),
          };
    const x = { field: "at", type: "temporal", scale: { type: "utc" }, title: axisTitle(group) };
    return {
      data: { values },
      mark: shape,
      encoding: { x, y: { ...amount, scale: { zero: mark !== "line" }, ...stack }, ...color },
    };
  }

  if (group?.kind === "bin" && plan.limit === undefined) {
    const binned = values.map((value) => ({ ...value, end: Number(value.at) + group.step }));
    const x = { field: "at", bin: { binned: true, step: group.step }, type: "quantitative", title: group.column.name };
    return {
      data: { values: binned },
      mark: { type: "bar", ...fill },
      encoding: { x, x2: { field: "end" }, y: { ...amount, ...stack }, ...color },
    };
  }

  const places = [...new Set(values.map(({ label }) => label))];
  const ordered = group !== undefined && (group.kind !== "value" || group.numeric);
  const longest = Math.max(0, ...places.map((label) => label.length));
  const lying = !ordered && (places.length > 12 || longest > 10);
  const place = { field: "label", type: "nominal", sort: places, title: group === undefined ? null : axisTitle(group) };
  const beside = coloured && !stacks && mark === "bar";
  const shape = mark === "bar" ? { type: "bar", ...fill } : { type: mark, ...fill, point: true };
  if (lying && mark === "bar") {
    const offset = beside ? { yOffset: { field: "series", sort: names } } : {};
    return {
      height: { step: beside ? 10 : 20 },
      data: { values },
      mark: shape,
      encoding: {
        y: { ...place, axis: { labelLimit: 220 } },
        x: { ...amount, ...(beside ? { stack: null } : stack) },
        ...offset,
        ...color,
      },
    };
  }
  const offset = beside ? { xOffset: { field: "series", sort: names } } : {};
  const turned = { axis: { labelAngle: places.length > 16 || (places.length > 8 && longest > 6) ? -45 : 0 } };
  return {
    data: { values },
    mark: shape,
    encoding: {
      x: { ...place, ...turned },
      y: { ...amount, ...(beside ? { stack: null } : stack) },
      ...offset,
      ...color,
    },
  };
}

/** Whether the groups are points of a calendar, so that the axis is one of time. */
function isAlong(group: Grouping): boolean {
  return group.kind === "time" && !group.unit.includes(" of the ");
}

function axisTitle(group: Grouping): string {
  const { name } = group.column;
  if (group.kind !== "time" || group.unit === "instant" || group.unit === "day" || group.unit === name.toLowerCase())
    return name;
  return `${name} (${group.unit})`;
}
