import type { Lane, Span, SpanKind } from "./lanes.ts";

/* Draws a timeline on a canvas, and finds the span at a point. */

/** A period of time, in milliseconds since the Unix epoch. */
export interface Stretch {
  readonly from: number;
  readonly to: number;
}

const laneHeight = 26;
const axisHeight = 22;
const barHeight = 14;

/** Width of the lane names. Smaller on a phone. */
function namesOf(width: number): number {
  return Math.min(150, Math.round(width * 0.3));
}

/** Height of the chart, in pixels. */
export function heightOf(lanes: readonly Lane[]): number {
  return axisHeight + lanes.length * laneHeight;
}

/** The period of all spans, with a margin. */
export function wholeOf(lanes: readonly Lane[]): Stretch {
  let from = Infinity;
  let to = -Infinity;
  for (const { spans } of lanes) {
    from = Math.min(from, spans[0]?.start ?? Infinity);
    for (const { end } of spans) to = Math.max(to, end);
  }
  if (from > to) return { from: 0, to: 1 };
  const margin = Math.max((to - from) * 0.02, 1);
  return { from: from - margin, to: to + margin };
}

/** Zooms by a factor around a point of the chart. The minimum is a tenth of a millisecond. */
export function zoomed({ from, to }: Stretch, factor: number, x: number, width: number): Stretch {
  const names = namesOf(width);
  const at = from + ((to - from) * Math.max(0, x - names)) / Math.max(1, width - names);
  const scale = Math.max(factor, 0.1 / (to - from));
  return { from: at - (at - from) * scale, to: at + (to - at) * scale };
}

/** Moves the period by a number of pixels. */
export function moved({ from, to }: Stretch, pixels: number, width: number): Stretch {
  const by = ((to - from) * pixels) / Math.max(1, width - namesOf(width));
  return { from: from + by, to: to + by };
}

/** The period between two points of the chart. */
export function between({ from, to }: Stretch, a: number, b: number, width: number): Stretch {
  const names = namesOf(width);
  const at = (x: number): number => from + ((to - from) * Math.max(0, x - names)) / Math.max(1, width - names);
  const [first, last] = [at(Math.min(a, b)), at(Math.max(a, b))];
  return { from: first, to: Math.max(last, first + 0.1) };
}

/** The chart colours of the page. */
export interface Palette extends Readonly<Record<SpanKind, string>> {
  readonly text: string;
  readonly quiet: string;
  readonly line: string;
}

interface Drawing {
  readonly context: CanvasRenderingContext2D;
  readonly width: number;
  readonly stretch: Stretch;
  readonly palette: Palette;
  readonly chosen: Span | undefined;
}

/** Draws the lanes. Spans that cover the same pixels are drawn once, so the chart's width limits the cost. */
export function draw(lanes: readonly Lane[], drawing: Drawing): void {
  const { context, width, palette } = drawing;
  context.clearRect(0, 0, width, heightOf(lanes));
  context.font = "12px system-ui, sans-serif";
  context.textBaseline = "middle";
  drawAxis(drawing);
  lanes.forEach(({ name, spans, depth = 0 }, at) => {
    const indent = 6 + 12 * depth;
    const top = axisHeight + at * laneHeight;
    context.fillStyle = palette.line;
    context.fillRect(0, top, width, 1);
    context.fillStyle = palette.text;
    context.fillText(fitted(context, name, namesOf(width) - 6 - indent), indent, top + laneHeight / 2);
    drawLane(spans, top, drawing);
  });
}

function drawLane(spans: readonly Span[], top: number, { context, width, stretch, palette, chosen }: Drawing): void {
  const names = namesOf(width);
  const scale = (width - names) / (stretch.to - stretch.from);
  const xOf = (time: number): number => names + (time - stretch.from) * scale;
  const y = top + (laneHeight - barHeight) / 2;
  let drawnTo = -1;
  let writtenTo = names;
  const write = (label: string, from: number, to: number, isLeft = false): void => {
    const text = fitted(context, label, to - from);
    const { width: taken } = context.measureText(text);
    context.fillStyle = palette.text;
    context.fillText(text, isLeft ? to - taken : from, y + barHeight / 2);
    writtenTo = isLeft ? to : from + taken;
  };
  context.save();
  context.beginPath();
  context.rect(names, top, width - names, laneHeight);
  context.clip();
  for (let at = firstAt(spans, stretch.from); at < spans.length; at++) {
    const span = spans[at];
    if (span === undefined || span.start > stretch.to) break;
    const left = Math.floor(xOf(span.start));
    const right = Math.max(left + 3, Math.ceil(xOf(span.end)));
    if (right <= drawnTo && span !== chosen) continue;
    const free = Math.max(drawnTo, writtenTo);
    drawnTo = right;
    context.fillStyle = palette[span.kind];
    // A gap separates adjacent bars.
    context.fillRect(left, y, right - left - (right - left > 8 ? 1 : 0), barHeight);
    if (span === chosen) context.strokeRect(left - 1.5, y - 1.5, right - left + 3, barHeight + 3);
    const next = Math.min(width, xOf(spans[at + 1]?.start ?? Infinity));
    const begin = Math.max(left, names, writtenTo);
    // Draws the label inside the bar, or next to it if there is space.
    if (Math.min(right, next) - begin > 40) write(span.label, begin + 4, Math.min(right, next) - 4);
    else if (next - right > 60 && right >= writtenTo) write(span.label, right + 4, next - 4);
    else if (left - free > 60) write(span.label, free + 4, left - 4, true);
  }
  context.restore();
}

/** Index of the first span that may overlap the period. */
function firstAt(spans: readonly Span[], from: number): number {
  const reach = reachOf(spans);
  let low = 0;
  let high = spans.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((reach[middle] ?? Infinity) < from) low = middle + 1;
    else high = middle;
  }
  return low;
}

const reaches = new WeakMap<readonly Span[], Float64Array>();

/** For each span, the latest end among this span and all earlier ones. Ascending, which allows a binary search. */
function reachOf(spans: readonly Span[]): Float64Array {
  const known = reaches.get(spans);
  if (known !== undefined) return known;
  const reach = new Float64Array(spans.length);
  let latest = -Infinity;
  spans.forEach(({ end }, at) => {
    latest = Math.max(latest, end);
    reach[at] = latest;
  });
  reaches.set(spans, reach);
  return reach;
}

const steps = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 3e4, 6e4, 3e5, 6e5, 18e5, 36e5, 216e5, 864e5];

function drawAxis({ context, width, stretch, palette }: Drawing): void {
  const names = namesOf(width);
  const scale = (width - names) / (stretch.to - stretch.from);
  const step = steps.find((each) => each * scale > 90) ?? 864e5 * 7;
  context.fillStyle = palette.quiet;
  for (let time = Math.ceil(stretch.from / step) * step; time < stretch.to; time += step) {
    const x = names + (time - stretch.from) * scale;
    context.fillRect(Math.round(x), 0, 1, axisHeight);
    context.fillText(timeText(time, step), x + 4, axisHeight / 2);
  }
}

function timeText(time: number, step: number): string {
  const text = new Date(time).toISOString();
  if (step >= 864e5) return text.slice(0, 10);
  return step >= 1000 ? text.slice(11, 19) : text.slice(17, 23);
}

function fitted(context: CanvasRenderingContext2D, text: string, width: number): string {
  if (context.measureText(text).width <= width) return text;
  const share = Math.floor((text.length * width) / context.measureText(text).width);
  return share < 2 ? "" : `${text.slice(0, share - 1)}…`;
}

/** The span at a point, or the nearest one within a few pixels. */
export function spanAt(
  lanes: readonly Lane[],
  x: number,
  y: number,
  width: number,
  stretch: Stretch,
): Span | undefined {
  const { spans } = lanes[Math.floor((y - axisHeight) / laneHeight)] ?? {};
  const names = namesOf(width);
  if (spans === undefined || x < names) return undefined;
  const perPixel = (stretch.to - stretch.from) / (width - names);
  const time = stretch.from + (x - names) * perPixel;
  let best: { readonly span: Span; readonly distance: number } | undefined;
  for (let at = firstAt(spans, time - 5 * perPixel); at < spans.length; at++) {
    const span = spans[at];
    if (span === undefined || span.start > time + 5 * perPixel) break;
    const distance = Math.max(span.start - time, time - span.end, 0);
    if (distance <= 5 * perPixel && (best === undefined || distance <= best.distance)) best = { span, distance };
  }
  return best?.span;
}
