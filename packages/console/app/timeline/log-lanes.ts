import type { LogEntry, ShownTask } from "@parley/server/internal/operate/port";
import type { LoggedTask } from "../operate/log.ts";
import { nodeWord, stateWord } from "../operate/words.ts";
import type { Lane, Span, SpanKind } from "./lanes.ts";

/* The lanes of a task's stored log, with the lanes of its delegated tasks below. */

/** Maximum lanes of artifacts, and of concurrent steps. Further artifacts or steps share the last lane. */
const [maxArtifacts, maxSteps] = [12, 4];

/** The lanes of a task. */
export function logLanes(task: LoggedTask, depth = 0): readonly Lane[] {
  const { shown } = task;
  const lanes = [
    ...runLanes(task),
    ...packed("Steps", stepsOf(task), maxSteps),
    ...packed("Waits", waitsOf(task), maxSteps),
    { name: "Status", spans: statusOf(task) },
    {
      name: "Messages",
      spans: task.entries.filter(({ kind }) => kind === "message" || kind === "task").map(messageOf),
    },
    ...artifactLanes(task),
    ...shown.webhooks.map((webhook) => webhookLane(webhook, task)),
    { name: "Operators", spans: shown.acts.map(actOf) },
  ];
  const own = lanes
    .filter(({ spans }) => spans.length > 0)
    .map(({ name, spans }) => ({ name, depth, spans: spans.toSorted((a, b) => a.start - b.start) }));
  return [...own, ...shown.delegations.flatMap((delegation) => delegatedLanes(delegation, task, depth))];
}

const timeOf = (time: string): number => Date.parse(time);

function span(start: number, end: number, label: string, kind: SpanKind, about: unknown): Span {
  return { start, end: Math.max(start, end), label, kind, detail: () => JSON.stringify(about, null, 2) };
}

const point = (time: string, label: string, kind: SpanKind, about: unknown): Span =>
  span(timeOf(time), timeOf(time), label, kind, about);

/** The time when the task ended; for a running task, the current time. */
function endOf({ shown, at, entries }: LoggedTask): number {
  return shown.why.kind === "done" ? timeOf(shown.why.since) : Math.max(at, timeOf(entries.at(-1)?.time ?? ""));
}

interface Attempt {
  readonly turn: number;
  readonly attempt: number;
  start: number;
  end: number;
  node?: string;
  records: number;
}

/** The attempts of a task, from its records and takeovers. */
function attemptsOf(task: LoggedTask): readonly Attempt[] {
  const { shown, entries } = task;
  const all = new Map<string, Attempt>();
  const attemptAt = (turn: number, attempt: number, time: number): Attempt => {
    const key = `${turn}.${attempt}`;
    const found = all.get(key) ?? { turn, attempt, start: time, end: time, records: 0 };
    all.set(key, found);
    found.start = Math.min(found.start, time);
    found.end = Math.max(found.end, time);
    return found;
  };
  for (const { turn, attempt, time } of entries) attemptAt(turn, attempt, timeOf(time)).records += 1;
  for (const { turn, attempt, time, node, from } of shown.takeovers) {
    attemptAt(turn, attempt, timeOf(time)).node = node;
    const lost = all.get(`${turn}.${attempt - 1}`);
    if (lost !== undefined && from !== undefined) lost.node = from;
  }
  const { run, node } = shown.task;
  if (run !== undefined && node !== undefined) {
    const running = attemptAt(run.turn, run.attempt, timeOf(entries.at(-1)?.time ?? shown.task.statusTime));
    running.node = node;
    running.end = endOf(task);
  }
  const ordered = [...all.values()].sort((a, b) => a.turn - b.turn || a.attempt - b.attempt);
  // A step also proves that the attempt was alive.
  const signs = shown.steps.flatMap(({ begun = "", ended = begun }) => [timeOf(begun), timeOf(ended)]);
  ordered.forEach((one, at) => {
    const next = ordered[at + 1]?.start ?? Infinity;
    for (const sign of signs) if (sign >= one.start && sign < next) one.end = Math.max(one.end, sign);
  });
  return ordered;
}

function runLanes(task: LoggedTask): readonly Lane[] {
  const { takeovers, task: head } = task.shown;
  const { run } = head;
  const spans = attemptsOf(task).map((one) => {
    const { turn, attempt, start, end, node, records } = one;
    const takenOver = takeovers.find(
      (each) => each.turn === turn && each.attempt === attempt + 1 && each.from !== undefined,
    );
    const isSuspended = run?.suspended === true && run.turn === turn && run.attempt === attempt;
    const where = node === undefined ? "" : ` on ${nodeWord(node)}`;
    const what =
      takenOver !== undefined ? ": crashed or hung" : isSuspended ? `: suspended after ${run.deaths} deaths` : "";
    const kind = what === "" ? "run" : "failed";
    return span(start, end, `turn ${turn}, attempt ${attempt}${where}${what}`, kind, {
      turn,
      attempt,
      node,
      records,
      takenOver,
    });
  });
  const marks = takeovers.map((one) =>
    one.from === undefined
      ? point(one.time, `resumed on ${nodeWord(one.node)}`, "run", one)
      : point(one.time, `taken over from ${nodeWord(one.from)} by ${nodeWord(one.node)}`, "failed", one),
  );
  return [
    { name: "Runs", spans },
    { name: "Takeovers", spans: marks },
  ];
}

/** Puts concurrent spans into separate lanes. */
function packed(name: string, spans: readonly Span[], most: number): readonly Lane[] {
  const lanes: Span[][] = [];
  for (const one of spans.toSorted((a, b) => a.start - b.start)) {
    const free = lanes.find((lane) => (lane.at(-1)?.end ?? 0) <= one.start);
    if (free !== undefined) free.push(one);
    else if (lanes.length < most) lanes.push([one]);
    else lanes.at(-1)?.push(one);
  }
  return lanes.map((lane, at) => ({ name: at === 0 ? name : `${name} ${at + 1}`, spans: lane }));
}

function stepsOf(task: LoggedTask): readonly Span[] {
  return task.shown.steps.flatMap((step) => {
    const { name, state, begun, ended } = step;
    if (begun === undefined) return [];
    const isStuck = state === "begun" && task.shown.task.node === undefined;
    const end = ended === undefined ? (isStuck ? timeOf(begun) : endOf(task)) : timeOf(ended);
    return [span(timeOf(begun), end, isStuck ? `${name}: no result` : name, isStuck ? "failed" : "step", step)];
  });
}

function waitsOf(task: LoggedTask): readonly Span[] {
  const { waited, waits } = task.shown;
  return [
    ...waited.map((wait) => span(timeOf(wait.begun), timeOf(wait.ended), wait.name, "wait", wait)),
    ...waits.flatMap((wait) => {
      if (!("since" in wait) || wait.since === undefined || wait.kind === "done" || wait.kind === "running") return [];
      return [span(timeOf(wait.since), endOf(task), wait.text, "wait", wait)];
    }),
  ];
}

/** One span for each state, until the next state. */
function statusOf(task: LoggedTask): readonly Span[] {
  const changes = task.entries.filter(({ state }) => state !== undefined);
  return changes.map((entry, at) => {
    const { time, state = "", seq } = entry;
    const next = changes[at + 1]?.time;
    const isOver = /_(?:COMPLETED|FAILED|CANCELED|REJECTED)$/.test(state);
    const end = next === undefined ? (isOver ? timeOf(time) : endOf(task)) : timeOf(next);
    return span(
      timeOf(time),
      end,
      `${stateWord(state)} (${seq})`,
      /FAILED|REJECTED/.test(state) ? "failed" : "status",
      entry,
    );
  });
}

function messageOf(entry: LogEntry): Span {
  return point(entry.time, `${entry.kind} of ${entry.actor} (${entry.seq})`, "message", entry);
}

function artifactLanes({ entries }: LoggedTask): readonly Lane[] {
  const lanes = new Map<string, Span[]>();
  for (const entry of entries) {
    const { artifactId, time, seq } = entry;
    if (artifactId === undefined) continue;
    const own = `Artifact ${artifactId}`;
    const name = lanes.has(own) || lanes.size < maxArtifacts ? own : "Other artifacts";
    const spans = lanes.get(name) ?? [];
    lanes.set(name, spans);
    spans.push(point(time, `${artifactId} (${seq})`, "artifact", entry));
  }
  return [...lanes].map(([name, spans]) => ({ name, spans }));
}

function webhookLane(webhook: ShownTask["webhooks"][number], task: LoggedTask): Lane {
  const { url, seq, state, attempts, problem = "", problemTime, next, refused, delivered } = webhook;
  const { host, pathname } = URL.canParse(url) ? new URL(url) : { host: url, pathname: "" };
  const upTo = task.entries.findLast((entry) => entry.seq <= seq);
  const spans = refused.map((one) => point(one.time, `entry ${one.seq} rejected: ${one.problem}`, "failed", one));
  if (upTo !== undefined && delivered > 0) {
    spans.push(point(upTo.time, `${delivered} delivered, up to entry ${seq}`, "webhook", webhook));
  }
  if (problemTime !== undefined) {
    const then = next === undefined ? state : `next at ${next}`;
    spans.push(
      span(timeOf(problemTime), task.at, `${attempts} attempts failed: ${problem}; ${then}`, "failed", webhook),
    );
  }
  return { name: `Webhook ${host}${pathname}`, spans };
}

function actOf(act: ShownTask["acts"][number]): Span {
  const { time, act: name, by = "an operator", outcome } = act;
  return point(time, `${name} by ${by}: ${outcome}`, outcome === "done" ? "run" : "failed", act);
}

function delegatedLanes(
  delegation: ShownTask["delegations"][number],
  task: LoggedTask,
  depth: number,
): readonly Lane[] {
  const { number, agent, taskId = "not known", state } = delegation;
  const child = task.children.get(number);
  const [first] = child?.entries ?? [];
  const label = `task ${taskId} of ${agent}: ${state}`;
  // If the task runs on another server, its log is not available, and no record has the time of the call.
  const begun = first?.time ?? task.entries[0]?.time ?? "";
  const end = child === undefined ? timeOf(begun) : endOf(child);
  const own: Lane = { name: `↳ ${agent}`, depth, spans: [span(timeOf(begun), end, label, "call", delegation)] };
  return child === undefined ? [own] : [own, ...logLanes(child, depth + 1)];
}
