import { useSignal } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import {
  between,
  draw,
  heightOf,
  moved,
  spanAt,
  wholeOf,
  zoomed,
  type Palette,
  type Stretch,
} from "../timeline/chart.ts";
import { operators, refusedBy } from "../operate/api.ts";
import { TaskLogFollower } from "../operate/log.ts";
import { lanesOf, wireLanes, type Lane, type Span } from "../timeline/lanes.ts";
import { logLanes } from "../timeline/log-lanes.ts";
import { Rows } from "../timeline/rows.tsx";
import { linkTo } from "../route.ts";
import { readOnly } from "../saved.ts";
import { agentOf } from "../server.ts";
import { exchanges, isOf } from "../wire.ts";

interface TimelineProps {
  /** `AgentEntry.id`. Absent: all agents. */
  readonly agent: string | undefined;
  /** Task id. Absent: all tasks. */
  readonly task: string | undefined;
}

/**
 * The wire traffic over time: a zoomable chart, a list of the same events, and the bytes of the selected event. For a task also the stored
 * log of its server, if the user is an operator.
 */
export function Timeline({ agent, task }: TimelineProps) {
  return task === undefined || operators.value === undefined || readOnly.value !== undefined ? (
    <WireTimeline agent={agent} task={task} />
  ) : (
    <TaskTimeline key={`${agent ?? ""} ${task}`} agent={agent} task={task} />
  );
}

function WireTimeline({ agent, task }: TimelineProps) {
  return <TimelineOf lanes={useWire(agent, task)} />;
}

function TaskTimeline({ agent, task }: TimelineProps & { readonly task: string }) {
  const follower = useMemo(() => new TaskLogFollower(agent, task), []);
  useEffect(() => follower.follow(), []);
  const loaded = follower.loaded.value;
  const stored = useMemo(() => (loaded === undefined ? [] : logLanes(loaded)), [loaded]);
  // A link from Operate has the server's mount id, which the wire log may not use.
  const wire = useWire(agentOf(agent)?.id, task);
  const lanes = useMemo(() => (stored.length === 0 ? wire : [...wireLanes(wire), ...stored]), [wire, stored]);
  return (
    <>
      {refusedBy.value !== "" ? (
        <p class="why quiet">
          Operators also see runs, steps, waits and webhooks here: <a href={linkTo({ screen: "operate" })}>sign in</a>.
        </p>
      ) : (
        follower.problem.value !== "" && (
          <p class="why problem" role="status">
            {follower.problem.value}
          </p>
        )
      )}
      {loaded !== undefined && (
        <p class="why" role="status">
          {loaded.shown.why.text}
        </p>
      )}
      <TimelineOf lanes={lanes} />
    </>
  );
}

/** The lanes of the wire traffic. */
function useWire(agent: string | undefined, task: string | undefined): readonly Lane[] {
  const all = exchanges.value;
  return useMemo(() => lanesOf(all.filter(isOf(agent)), task, Date.now()), [all, agent, task]);
}

/** A timeline of the given lanes. */
export function TimelineOf({ lanes }: { readonly lanes: readonly Lane[] }) {
  const chosen = useSignal<Span | undefined>(undefined);
  const stretch = useSignal<Stretch | undefined>(undefined);
  const shown = stretch.value ?? wholeOf(lanes);
  const spans = useMemo(() => lanes.flatMap((lane) => lane.spans).sort((a, b) => a.start - b.start), [lanes]);
  const nameOf = useMemo(
    () => new Map(lanes.flatMap(({ name, spans: own }) => own.map((span) => [span, name]))),
    [lanes],
  );
  if (spans.length === 0) return <p class="quiet empty">No events yet.</p>;
  const begin = spans[0]?.start ?? 0;
  return (
    <div class="timeline">
      <div class="tools">
        <h1>Timeline</h1>
        <button type="button" class="small" onClick={() => (stretch.value = undefined)}>
          Fit
        </button>
        <span class="quiet">
          {spans.length.toLocaleString("en")} events · {((shown.to - shown.from) / 1000).toFixed(2)} s in view
        </span>
      </div>
      <Chart
        lanes={lanes}
        stretch={shown}
        chosen={chosen.value}
        onStretch={(next) => (stretch.value = next)}
        onChoose={(span) => (chosen.value = span)}
      />
      <div class="split">
        <Rows
          items={spans}
          label="Events"
          chosen={chosen.value}
          onChoose={(span) => {
            chosen.value = span;
            stretch.value = showing(span, shown);
          }}
          row={(span) => (
            <>
              <span class="quiet">+{((span.start - begin) / 1000).toFixed(3)} s</span>
              <span class="clip" data-kind={span.kind} dir="auto">
                <span class="quiet">{nameOf.get(span)}</span> {span.label}
              </span>
              <span class="quiet">{span.end > span.start && `${Math.round(span.end - span.start)} ms`}</span>
            </>
          )}
        />
        <section class="detail" tabIndex={0} aria-label="Bytes">
          <pre>
            {chosen.value === undefined
              ? "Choose an event to see its bytes."
              : chosen.value.detail() || "This event has no bytes."}
          </pre>
        </section>
      </div>
    </div>
  );
}

/** Moves the period so that a span is visible. */
function showing({ start }: Span, { from, to }: Stretch): Stretch {
  if (start >= from && start <= to) return { from, to };
  const half = (to - from) / 2;
  return { from: start - half, to: start + half };
}

interface ChartProps {
  readonly lanes: readonly Lane[];
  readonly stretch: Stretch;
  readonly chosen: Span | undefined;
  readonly onStretch: (stretch: Stretch) => void;
  readonly onChoose: (span: Span | undefined) => void;
}

/** The point where a drag started, and whether the drag selects a period to zoom to (brush). */
interface Drag {
  readonly x: number;
  readonly stretch: Stretch;
  readonly isBrush: boolean;
  moved: boolean;
}

/** The wheel and the keys + and - zoom. A drag and the arrow keys move. A drag with Shift zooms to the selected period. */
function Chart({ lanes, stretch, chosen, onStretch, onChoose }: ChartProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const width = useSignal(800);
  const drag = useRef<Drag | undefined>(undefined);
  const brush = useSignal<readonly [from: number, to: number] | undefined>(undefined);
  useEffect(() => {
    const box = canvas.current?.parentElement;
    if (!box) return;
    const observer = new ResizeObserver(() => (width.value = Math.max(320, box.clientWidth)));
    observer.observe(box);
    return () => observer.disconnect();
  }, []);
  const height = heightOf(lanes);
  useEffect(() => {
    const frame = requestAnimationFrame(() => {
      const context = canvas.current?.getContext("2d");
      if (!canvas.current || !context) return;
      const ratio = devicePixelRatio;
      canvas.current.width = width.value * ratio;
      canvas.current.height = height * ratio;
      context.scale(ratio, ratio);
      draw(lanes, { context, width: width.value, stretch, palette: paletteOf(canvas.current), chosen });
    });
    return () => cancelAnimationFrame(frame);
  }, [lanes, stretch.from, stretch.to, chosen, width.value, height]);
  const keys: Readonly<Record<string, () => Stretch>> = {
    "+": () => zoomed(stretch, 0.7, width.value / 2, width.value),
    "-": () => zoomed(stretch, 1.4, width.value / 2, width.value),
    ArrowLeft: () => moved(stretch, -80, width.value),
    ArrowRight: () => moved(stretch, 80, width.value),
  };
  return (
    <div class="chart">
      <canvas
        ref={canvas}
        style={{ width: `${width.value}px`, height: `${height}px` }}
        role="application"
        aria-label="Timeline; plus and minus zoom, the arrow keys move. The list below has the same events"
        tabIndex={0}
        onWheel={(event) => {
          event.preventDefault();
          const isMove = event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY);
          const next = isMove
            ? moved(stretch, event.deltaX + (event.shiftKey ? event.deltaY : 0), width.value)
            : zoomed(stretch, Math.exp(event.deltaY / 300), event.offsetX, width.value);
          onStretch(next);
        }}
        onPointerDown={(event) => {
          event.currentTarget.setPointerCapture(event.pointerId);
          drag.current = { x: event.offsetX, stretch, isBrush: event.shiftKey, moved: false };
        }}
        onPointerMove={(event) => {
          const { current } = drag;
          if (current === undefined) {
            event.currentTarget.title = spanAt(lanes, event.offsetX, event.offsetY, width.value, stretch)?.label ?? "";
            return;
          }
          if (Math.abs(event.offsetX - current.x) < 3) return;
          current.moved = true;
          if (current.isBrush) brush.value = [current.x, event.offsetX];
          else onStretch(moved(current.stretch, current.x - event.offsetX, width.value));
        }}
        onPointerUp={(event) => {
          const { moved: wasMoved = false } = drag.current ?? {};
          drag.current = undefined;
          if (brush.value !== undefined) onStretch(between(stretch, ...brush.value, width.value));
          brush.value = undefined;
          if (!wasMoved) onChoose(spanAt(lanes, event.offsetX, event.offsetY, width.value, stretch));
        }}
        onKeyDown={(event) => {
          const next = keys[event.key];
          if (next === undefined) return;
          event.preventDefault();
          onStretch(next());
        }}
      />
      {brush.value !== undefined && (
        <div
          class="brush"
          style={{
            left: `${Math.min(...brush.value)}px`,
            width: `${Math.abs(brush.value[1] - brush.value[0])}px`,
            height: `${height}px`,
          }}
        />
      )}
    </div>
  );
}

function paletteOf(element: HTMLElement): Palette {
  const style = getComputedStyle(element);
  const color = (name: string): string => style.getPropertyValue(`--chart-${name}`);
  return {
    text: style.color,
    quiet: color("quiet"),
    line: color("line"),
    call: color("call"),
    failed: color("failed"),
    status: color("status"),
    artifact: color("artifact"),
    message: color("message"),
    run: color("run"),
    step: color("step"),
    wait: color("wait"),
    webhook: color("message"),
  };
}
