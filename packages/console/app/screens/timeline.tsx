import { useSignal } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { draw, heightOf, moved, spanAt, wholeOf, zoomed, type Palette, type Stretch } from "../timeline/chart.ts";
import { lanesOf, type Lane, type Span } from "../timeline/lanes.ts";
import { Rows } from "../timeline/rows.tsx";
import { exchanges } from "../wire.ts";

interface TimelineProps {
  /** `AgentEntry.id`. Absent: all agents. */
  readonly agent: string | undefined;
  /** Id of a task. Absent: all of them. */
  readonly task: string | undefined;
}

/** What went over the wire, by time: a chart to zoom, a list of the same, and the bytes of what is chosen. */
export function Timeline({ agent, task }: TimelineProps) {
  const all = exchanges.value;
  const lanes = useMemo(
    () =>
      lanesOf(
        all.filter(({ request }) => (agent ?? request.agent) === request.agent),
        task,
        Date.now(),
      ),
    [all, agent, task],
  );
  return <TimelineOf lanes={lanes} />;
}

/** A timeline of any lanes. */
export function TimelineOf({ lanes }: { readonly lanes: readonly Lane[] }) {
  const chosen = useSignal<Span | undefined>(undefined);
  const stretch = useSignal<Stretch | undefined>(undefined);
  const shown = stretch.value ?? wholeOf(lanes);
  const spans = useMemo(() => lanes.flatMap((lane) => lane.spans).sort((a, b) => a.start - b.start), [lanes]);
  if (spans.length === 0) return <p class="quiet empty">Nothing has happened yet.</p>;
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
          row={({ start, end, label, kind }) => (
            <>
              <span class="quiet">+{((start - begin) / 1000).toFixed(3)} s</span>
              <span class="clip" data-kind={kind} dir="auto">
                {label}
              </span>
              <span class="quiet">{end > start && `${Math.round(end - start)} ms`}</span>
            </>
          )}
        />
        <section class="detail" tabIndex={0} aria-label="Bytes">
          <pre>{chosen.value?.detail() ?? "Choose an event to see its bytes."}</pre>
        </section>
      </div>
    </div>
  );
}

/** The stretch, moved so that a span is in it. */
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

/** The wheel zooms, a drag moves, and the keys + - and the arrows do the same. */
function Chart({ lanes, stretch, chosen, onStretch, onChoose }: ChartProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const width = useSignal(800);
  const drag = useRef<{ readonly x: number; readonly stretch: Stretch; moved: boolean } | undefined>(undefined);
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
          drag.current = { x: event.offsetX, stretch, moved: false };
        }}
        onPointerMove={(event) => {
          const { current } = drag;
          if (current === undefined || Math.abs(event.offsetX - current.x) < 3) return;
          current.moved = true;
          onStretch(moved(current.stretch, current.x - event.offsetX, width.value));
        }}
        onPointerUp={(event) => {
          const wasMoved = drag.current?.moved === true;
          drag.current = undefined;
          if (!wasMoved) onChoose(spanAt(lanes, event.offsetX, event.offsetY, width.value, stretch));
        }}
        onKeyDown={(event) => {
          const next = keys[event.key];
          if (next === undefined) return;
          event.preventDefault();
          onStretch(next());
        }}
      />
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
    run: color("call"),
    step: color("artifact"),
    wait: color("quiet"),
    webhook: color("message"),
  };
}
