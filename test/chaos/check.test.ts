import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { TaskState } from "@parley/a2a/model";
import { eventOf, type LogRecord } from "@parley/a2a/internal/model/index";
import { describe, expect, test } from "vitest";
import { check, timeline } from "./check.ts";
import { readOf } from "./fold.ts";
import { digest, type Counted, type Entry, type Metered, type TaskLog } from "./history.ts";
import { exact, judged, Scraper, sumOf } from "./metrics.ts";
import { artifactOf, chunkOf, conversation, ways, type Order } from "./orders.ts";
import { plan } from "./plan.ts";

/** Checks that the judge of `npm run chaos` finds each broken promise in an otherwise correct history. */

const order: Order = { what: "tell", name: "0-0-a", chunks: 2, steps: [2], pause: 1 };
const [taskId, contextId] = ["t", "c"];
const times = { time: 1_000, turn: 1, attempt: 1 };

function record(seq: number, event: Record<string, object>, more: Partial<LogRecord> = {}): LogRecord {
  const [[kind, value]] = Object.entries(event) as [[LogRecord["kind"], object]];
  return { ...times, seq, kind, actor: "agent", json: JSON.stringify(value), ...more };
}

function status(state: TaskState): Record<string, object> {
  return { statusUpdate: { taskId, contextId, status: { state } } };
}

function chunk(number: number, more: object, parts: readonly object[] = []): Record<string, object> {
  const artifact = { artifactId: artifactOf(order), parts: [{ text: chunkOf(order, number) }, ...parts] };
  return { artifactUpdate: { taskId, contextId, artifact, ...more } };
}

const asked = { messageId: "m", role: "ROLE_USER", parts: [{ text: "Go" }] };
const submitted: TaskState = "TASK_STATE_SUBMITTED";
const done: TaskState = "TASK_STATE_COMPLETED";
const step = { data: { key: "k", call: 1, attempt: 1 } };

const records: readonly LogRecord[] = [
  record(
    1,
    { task: { id: taskId, contextId, status: { state: submitted }, history: [asked] } },
    { actor: "user", state: submitted },
  ),
  record(2, chunk(1, {})),
  record(3, chunk(2, { append: true, lastChunk: true }, [step])),
  record(4, status(done), { state: done, actor: "system" }),
];

function read(seq: number, at = 1_000 + seq): Entry {
  const event = eventOf(records[seq - 1] ?? expect.fail());
  return {
    type: "read",
    at,
    stream: 1,
    taskId,
    seq,
    digest: digest(event.task ?? event),
    whole: event.task !== undefined,
  };
}

function delivered(sequence: number, taken = true): Entry {
  const event = digest(eventOf(records[sequence - 1] ?? expect.fail()));
  return { type: "delivered", at: 2_000 + sequence, config: "w", taskId, sequence, digest: event, taken };
}

const effect = { type: "effect", at: 1_002, taskId, key: "k", attempt: 1, uncertain: false, call: 1 } as const;
const stored = { type: "stored", at: 1_000, node: "0.1", taskId, fence: 1, seq: 2, records: 1 } as const;
const end = { type: "closed", at: 1_010, stream: 1, taskId } as const;
const right: readonly Entry[] = [
  { type: "acked", at: 1_000, messageId: "m", taskId },
  ...[1, 2, 3, 4].map((seq) => read(seq)),
  end,
  effect,
  stored,
  { ...stored, seq: 4, records: 2, at: 1_001 },
  delivered(1, false),
  delivered(1),
  delivered(1),
  delivered(2),
  delivered(3),
  delivered(4),
  { type: "answered", at: 1_020, taskId, digest: digest(readOf(records)) },
];

/** Returns the rules that a history breaks. */
function broken(
  history: readonly Entry[],
  log: readonly LogRecord[] = records,
  more: Partial<TaskLog> = {},
): readonly string[] {
  const whole: TaskLog = { taskId, records: log, isHeld: false, isResumable: true, ...more };
  const { violations } = check(history, [whole], { orders: new Map([[taskId, [order]]]), promptWithin: 1_000 });
  for (const each of violations) expect(timeline(each, history, whole)).toBeInstanceOf(Array);
  return [...new Set(violations.map(({ rule }) => rule))];
}

function without(one: (entry: Entry) => boolean): readonly Entry[] {
  const left = right.filter((entry) => !one(entry));
  expect(left.length).toBeLessThan(right.length);
  return left;
}

const streams = "every event is on every stream once, in order";
const steps = "no step is done again once its result is stored";
const webhooks = "every webhook comes in order, at least once";
const operators = "operators are told what happened";
const fences = "one valid fence at a time";

describe("the judge", () => {
  test("finds nothing wrong in a valid history", () => {
    expect(broken(right)).toEqual([]);
  });

  test("finds a log with a gap, with records after its end, and a task that is not there", () => {
    expect(
      broken(
        right,
        records.filter(({ seq }) => seq !== 2),
      ),
    ).toContain("the log is whole");
    expect(broken(right, [...records, record(5, chunk(2, { append: true }))])).toContain("the log is whole");
    const { violations } = check(right, [], { orders: new Map(), promptWithin: 1_000 });
    expect(violations.map(({ what }) => what)).toContain("The task is not in the store");
  });

  test("finds an acknowledged message that is missing, and one that is there twice", () => {
    const messages = "every acknowledged message is there once, in order";
    expect(broken([...right, { type: "acked", at: 1_001, messageId: "n", taskId }])).toEqual([messages]);
    const again = record(2, { message: asked }, { actor: "user" });
    const moved = records.map((each) => (each.seq === 1 ? each : { ...each, seq: each.seq + 1 }));
    expect(broken(right, [records[0] ?? expect.fail(), again, ...moved.slice(1)])).toContain(messages);
  });

  test("finds an event that a stream lacks, repeats, or changes, and a stream without an end", () => {
    const is = (seq: number) => (entry: Entry) => entry.type === "read" && entry.seq === seq;
    for (const seq of [1, 2, 4]) expect(broken(without(is(seq)))).toEqual([streams]);
    expect(broken([...right, read(3, 1_008)])).toEqual([streams]);
    expect(broken([...without(is(3)), { ...read(3), digest: "other" } as Entry])).toEqual([streams]);
    expect(broken(without((entry) => entry === end))).toEqual([streams]);
    expect(broken([...without((entry) => entry === end), { ...end, error: "ConnectionLost" }])).toEqual([streams]);
  });

  test("lets a stream begin anew with the task, and has every event after it", () => {
    const task = digest(readOf(records.slice(0, 3)));
    const anew: Entry = { type: "read", at: 1_002, stream: 1, taskId, seq: 3, digest: task, whole: true };
    const rest = without((entry) => entry.type === "read" && (entry.seq ?? 0) > 1 && (entry.seq ?? 0) < 4);
    const at = rest.findIndex((entry) => entry.type === "read" && entry.seq === 4);
    expect(broken([...rest.slice(0, at), anew, ...rest.slice(at)])).toEqual([]);
    expect(broken([...rest.slice(0, at), { ...anew, digest: "other" }, ...rest.slice(at)])).toEqual([streams]);
  });

  test("finds an answer and a cancel that do not hold", () => {
    expect(broken([...right, { type: "answered", at: 1, taskId, digest: "other" }])).toEqual(["an answer is the task"]);
    expect(broken([...right, { type: "canceled", at: 1, taskId, state: "TASK_STATE_CANCELED" }])).toEqual([
      "a cancel is final",
    ]);
  });

  test("finds a task that has not ended, and one that is still held", () => {
    expect(broken(right, records.slice(0, 3))).toContain("every task ends");
    expect(broken(right, records, { isHeld: true })).toEqual(["every task ends"]);
  });

  test("finds a fence of two processes, an older fence after a newer one, and an older attempt after a newer one", () => {
    expect(broken([...right, { ...stored, node: "1.1", seq: 3 }])).toEqual([fences]);
    expect(broken([...right, { ...stored, fence: 2, seq: 3 }])).toEqual([fences]);
    const late = records.map((each) => (each.seq === 2 ? { ...each, attempt: 2 } : each));
    expect(broken(right, late)).toEqual([fences]);
  });

  test("finds a chunk that is missing or told twice, and a task that failed", () => {
    const content = "the task is what it would be without faults";
    expect(
      broken(
        right,
        records.map((each) => (each.seq === 2 ? record(2, chunk(2, {})) : each)),
      ),
    ).toContain(content);
    const failed: TaskState = "TASK_STATE_FAILED";
    const ended = [...records.slice(0, 3), record(4, status(failed), { state: failed })];
    expect(broken(right, ended)).toContain(content);
  });

  test("finds a step that is called after its result, twice in an attempt, or without being told", () => {
    const again = { ...effect, attempt: 2, call: 2, uncertain: true };
    expect(broken([...right, again])).toEqual([steps]);
    expect(broken([...right, { ...effect, call: 2 }])).toEqual([steps]);
    expect(broken(without((entry) => entry === effect))).toEqual([steps]);
    // The first call was cut off. The second call gets `uncertain`, and the task stores the second result.
    const first = { ...effect, call: 7, attempt: 0 };
    const cutOff = without((entry) => entry === effect);
    expect(broken([...cutOff, first, { ...effect, uncertain: true }])).toEqual([]);
    expect(broken([...cutOff, first, effect])).toEqual([steps]);
  });

  test("finds a webhook that is missing, out of order, or another event", () => {
    const is = (sequence: number) => (entry: Entry) => entry.type === "delivered" && entry.sequence === sequence;
    for (const sequence of [2, 4]) expect(broken(without(is(sequence)))).toEqual([webhooks]);
    expect(broken([...right, { ...delivered(2), at: 3_000 }])).toEqual([webhooks]);
    expect(broken([...without(is(4)), { ...delivered(4), digest: "other" } as Entry])).toEqual([webhooks]);
  });

  test("finds last events that are late without a fault, and accepts those near one", () => {
    const late = right.map((entry): Entry =>
      entry.type === "read" ? { ...entry, at: entry.at + 5_000, joined: true } : entry,
    );
    const there: Entry = { ...read(1), at: 999, joined: true } as Entry;
    const history = [there, ...late.filter((entry) => !(entry.type === "read" && entry.whole))];
    expect(broken(history)).toEqual(["wake-ups follow the commit"]);
    // A reader on the node that stores the event needs no wake-up.
    expect(broken(history.map((entry) => (entry.type === "read" ? read(entry.seq ?? 1, entry.at) : entry)))).toEqual(
      [],
    );
    expect(broken([...history, { type: "fault", at: 500, what: "kill", node: 0, lasts: 100 }])).toEqual([]);
  });

  test("finds wake-ups before the commit", () => {
    expect(broken([...right, { type: "told", at: 1_002, taskId, seq: 4 }])).toEqual([]);
    expect(broken([...right, { type: "told", at: 1_002, taskId, seq: 3 }])).toEqual(["wake-ups follow the commit"]);
  });

  test("finds counts of operators and gauges of the dashboard that are not those of the history", () => {
    const gauges = Object.fromEntries(exact.map((name) => [name, 0]));
    const quiet = { paused: [], queued: 0, runs: 0, listed: 1, gauges, open: [] };
    const agents = { "/resumable": { [done]: 1 } };
    const atEnd: Counted = { type: "counted", at: 3_000, node: "0.1", agents, ...quiet };
    const waits = { taskId, agent: "/resumable", state: "TASK_STATE_WORKING", waits: true } as const;
    const waiting: Counted = {
      ...atEnd,
      agents: { "/resumable": { TASK_STATE_WORKING: 1 } },
      gauges: { ...gauges, parley_tasks_waiting: 1 },
      open: [waits],
    };
    const queued: Counted = {
      ...atEnd,
      agents: { "/resumable": { [submitted]: 1 } },
      gauges: { ...gauges, parley_queue_length: 1, parley_queue_age_seconds: 2 },
      queued: 1,
      paused: ["/resumable"],
      open: [{ ...waits, state: submitted, waits: false }],
    };
    expect(broken([...right, atEnd, waiting, queued])).toEqual([]);
    const { parley_webhooks_due: _, ...missing } = gauges;
    const wrong: readonly Counted[] = [
      { ...atEnd, agents: { "/resumable": { [done]: 2 } } },
      { ...atEnd, agents: {} },
      { ...atEnd, agents: { ...agents, "/plain": { [done]: 1 } } },
      { ...atEnd, listed: 2 },
      { ...atEnd, runs: 1 },
      { ...atEnd, gauges: missing },
      ...exact.map((name) => ({ ...atEnd, gauges: { ...gauges, [name]: 1 } })),
      { ...waiting, gauges },
      { ...waiting, open: [] },
      { ...queued, gauges: { ...queued.gauges, parley_queue_age_seconds: 0 } },
      { ...queued, queued: 0 },
      { ...queued, paused: [] },
    ];
    for (const each of wrong) expect(broken([...right, each])).toEqual([operators]);
  });

  test("finds counters of a process below what it has stored, and sums above the history", () => {
    const all = { allRecords: 4, allTakeovers: 0, allDelivered: 4 };
    const metered: Metered = { type: "metered", at: 3_000, node: "0.1", records: 3, turns: 1, ...all };
    expect(broken([...right, metered])).toEqual([]);
    // A killed process loses its last counts.
    expect(broken([...right, { ...metered, allRecords: 0, allDelivered: 0 }])).toEqual([]);
    for (const more of [{ records: 2 }, { turns: 0 }, { allRecords: 5 }, { allTakeovers: 1 }, { allDelivered: 7 }])
      expect(broken([...right, { ...metered, ...more }])).toEqual([operators]);
  });

  test("reports clients and nodes that failed", () => {
    expect(broken([...right, { type: "trouble", at: 1, what: "Node 0.1 ended on its own: 1" }])).toEqual([
      "no client and no node fails",
    ]);
  });
});

describe("the dashboard", () => {
  const file = new URL("../../deploy/monitoring/grafana-dashboard.json", import.meta.url);
  const { panels } = JSON.parse(readFileSync(file, "utf8")) as {
    readonly panels: readonly { readonly targets?: readonly { readonly expr: string }[] }[];
  };
  const queries = panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr));

  test("shows no value of the store or of runs that a run of chaos does not judge", () => {
    const values = queries.filter((query) => !query.includes("["));
    const shown = values.flatMap((query) => query.match(/\bparley_\w+/g) ?? []);
    // No history contains the bytes and connections of a process. `parley_store_connection_state` is a label.
    const unjudged = [
      "parley_memory_held_bytes",
      "parley_store_connections",
      "parley_store_connection_state",
      "parley_store_connection_waits",
    ];
    expect(new Set(shown)).toEqual(new Set([...exact, ...unjudged]));
    for (const name of Object.keys(judged)) expect(queries.join("\n")).toContain(name);
  });

  test("is told of a counter over all processes of a node, without what a killed one had counted last", async () => {
    let answer = "";
    const server = createServer((_request, response) => response.end(answer));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const scraper = new Scraper((server.address() as AddressInfo).port);
    for (const text of ['n{a="1"} 3\nn{a="2"} 2\nother 9', 'n{a="1"} 4\nn{a="2"} 2', 'n{a="1"} 1', 'n{a="1"} 2']) {
      answer = `# TYPE n counter\n${text}\n`;
      await scraper.scrape();
    }
    expect([sumOf(scraper.total, "n"), sumOf(scraper.total, "n", 'a="2"'), sumOf(scraper.total, "other")]).toEqual([
      8, 2, 9,
    ]);
    await new Promise((resolve) => server.close(resolve));
    expect(await scraper.scrape()).toBeUndefined();
  });
});

describe("a seed", () => {
  test("has one plan of faults and conversations, with every kind of both", () => {
    const options = { seed: 7, length: 180_000, nodes: 3 };
    expect(plan(options)).toEqual(plan(options));
    expect(plan(options)).not.toEqual(plan({ ...options, seed: 8 }));
    expect(new Set(plan({ ...options, length: 120_000 }).map(({ what }) => what)).size).toBe(9);
    const tasks = (seed: number, number: number): unknown[] => {
      const planned = conversation(seed, number);
      return ways.map(() => planned.next().value);
    };
    expect(tasks(7, 3)).toEqual(tasks(7, 3));
    expect(tasks(7, 3)).not.toEqual(tasks(8, 3));
    expect(new Set((tasks(7, 0) as { way: string }[]).map(({ way }) => way))).toEqual(new Set(ways));
  });
});
