import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { TaskView } from "../../src/client/index.ts";
import {
  contentAfter,
  contentLength,
  TaskFold,
  type Artifact,
  type JsonValue,
  type NewRecord,
  type Part,
  type Task,
  type TaskArtifactUpdateEvent,
} from "../../src/model/index.ts";
import { assemble, assembleLog, compact, type TaskPieces } from "@parley/server/internal/store/assemble";

/** When a task is read, adjacent texts of an artifact are merged. The log and its events remain unchanged. */

const seed = Number(process.env["FUZZ_SEED"] ?? Math.floor(Math.random() * 2 ** 32));
const numRuns = 400;
const ids = { taskId: "t", contextId: "c" };
const merging = { mergeTextParts: true } as const;

const words = fc.oneof(
  fc.string(),
  fc.constantFrom("", '"', "\\", "\\u0022", '"},{"text":"', "\n", "\ud83d", "\ude00", "🙂"),
);
const part: fc.Arbitrary<Part> = fc.oneof(
  { weight: 8, arbitrary: fc.record({ text: words }) },
  { weight: 3, arbitrary: fc.record({ text: words, mediaType: fc.constantFrom("text/plain", "text/markdown") }) },
  { weight: 1, arbitrary: fc.record({ mediaType: fc.constant("text/markdown"), text: words }) },
  { weight: 1, arbitrary: fc.record({ text: words, metadata: fc.constantFrom({}, { a: 1 }) }) },
  { weight: 1, arbitrary: fc.record({ text: words, filename: fc.constantFrom("a.txt", "") }) },
  { weight: 1, arbitrary: fc.record({ raw: fc.constantFrom("AAE=", "AAI="), filename: fc.constant("a.bin") }) },
  { weight: 1, arbitrary: fc.record({ url: fc.constant("https://example.com/a") }) },
  { weight: 1, arbitrary: fc.record({ data: fc.constantFrom<JsonValue>(2, null, [1, "x"], { a: { b: [] } }) }) },
);
const update = fc.record({
  artifactId: fc.constantFrom("a", "b"),
  parts: fc.array(part, { minLength: 1, maxLength: 4 }),
  append: fc.boolean(),
  name: fc.option(fc.constant("named"), { nil: undefined, freq: 8 }),
});

type Update = typeof update extends fc.Arbitrary<infer T> ? T : never;

const base = { id: "t", contextId: "c", status: { state: "TASK_STATE_WORKING" } } as const;

/** Returns updates as an agent may yield them, so an artifact's first update does not append. */
function eventsOf(updates: readonly Update[]): readonly TaskArtifactUpdateEvent[] {
  const begun = new Set<string>();
  return updates.map(({ artifactId, parts, append, name }) => {
    const appends = append && begun.has(artifactId);
    begun.add(artifactId);
    const artifact = { artifactId, parts, ...(name !== undefined && { name }) };
    return { ...ids, artifact, ...(appends && { append: true }) };
  });
}

function logOf(events: readonly TaskArtifactUpdateEvent[]): readonly NewRecord[] {
  const common = { time: 1, actor: "agent", turn: 1, attempt: 1 } as const;
  return [
    { ...common, kind: "task", json: JSON.stringify(base), state: base.status.state },
    ...events.map((event) => ({ ...common, kind: "artifactUpdate" as const, json: JSON.stringify(event) })),
  ];
}

const read = (log: readonly NewRecord[], mergeTextParts: boolean): Task =>
  JSON.parse(assembleLog(log, { artifacts: true, mergeTextParts }).json ?? "") as Task;

/** Returns the merge key of a text that has at most a media type, or `undefined` for every other part. */
const plainType = (each: Part): string | undefined =>
  each.text !== undefined && Object.keys(each).every((name) => name === "text" || name === "mediaType")
    ? `type ${each.mediaType ?? ""}`
    : undefined;

/** Computes the expected result naively. */
function expectedOf({ parts, ...artifact }: Artifact): Artifact {
  const groups: Part[][] = [];
  for (const each of parts) {
    const last = groups.at(-1);
    const type = plainType(each);
    if (type !== undefined && last?.[0] !== undefined && plainType(last[0]) === type) last.push(each);
    else groups.push([each]);
  }
  const whole = groups.map(([first, ...more]) =>
    more.length === 0 ? first : { ...first, text: [first, ...more].map((each) => each?.text).join("") },
  );
  return { ...artifact, parts: whole as Part[] };
}

const textOf = ({ parts }: Artifact): string => parts.map(({ text = "\0" }) => text).join("");
const others = ({ parts }: Artifact): readonly Part[] => parts.filter((each) => plainType(each) === undefined);

describe(`adjacent text parts of an artifact (FUZZ_SEED=${seed})`, () => {
  test("become one part: text and order stay, files and data are untouched, the log is unchanged", () => {
    fc.assert(
      fc.property(fc.array(update, { maxLength: 12 }), (updates) => {
        const log = logOf(eventsOf(updates));
        const before = JSON.stringify(log);
        const plain = read(log, false);
        const merged = read(log, true);
        expect(merged).toEqual({ ...plain, ...(plain.artifacts && { artifacts: plain.artifacts.map(expectedOf) }) });
        for (const [at, artifact] of (plain.artifacts ?? []).entries()) {
          const other = merged.artifacts?.[at] as Artifact;
          expect([textOf(other), others(other)]).toEqual([textOf(artifact), others(artifact)]);
          expect(contentLength(other.parts)).toBe(contentLength(artifact.parts));
        }
        expect(JSON.stringify(log)).toBe(before);
        expect(read(log, false)).toEqual(plain);
      }),
      { seed, numRuns },
    );
  });

  test("are merged once: merging, folding or compacting again changes nothing", () => {
    fc.assert(
      fc.property(fc.array(update, { maxLength: 12 }), (updates) => {
        const log = logOf(eventsOf(updates));
        const merged = read(log, true);
        expect(JSON.parse(JSON.stringify(new TaskFold(merged, merging).snapshot()))).toEqual(merged);
        const fold = new TaskFold(undefined, merging);
        for (const record of log) fold.applyRecord(record);
        expect(JSON.parse(JSON.stringify(fold.snapshot()))).toEqual(merged);

        const head = { task: { agent: "/", owner: "o", taskId: "t" }, contextId: "c" } as TaskPieces["head"];
        const [first, ...rest] = log.map(({ json }) => json);
        const pieces: TaskPieces = {
          head,
          base: first ?? "",
          status: undefined,
          metadata: [],
          history: [],
          artifacts: rest,
        };
        const compacted = { ...pieces, ...compact(pieces) };
        for (const mergeTextParts of [false, true]) {
          const { json } = assemble(compacted, { artifacts: true, mergeTextParts });
          expect(JSON.parse(json)).toEqual(read(log, mergeTextParts));
        }
      }),
      { seed, numRuns },
    );
  });

  test("a reader who begins with a merged task and the events after it has the same task", () => {
    fc.assert(
      fc.property(fc.array(update, { maxLength: 12 }), fc.nat(12), (updates, cut) => {
        const events = eventsOf(updates);
        const view = new TaskView();
        view.apply({ task: read(logOf(events.slice(0, cut)), true) });
        for (const artifactUpdate of events.slice(cut)) view.apply({ artifactUpdate });
        expect(JSON.parse(JSON.stringify(view.task))).toEqual(read(logOf(events), true));
      }),
      { seed, numRuns },
    );
  });

  test("content that was read is found again in the merged text, wherever it ended", () => {
    fc.assert(
      fc.property(fc.array(update, { minLength: 1, maxLength: 12 }), fc.nat(11), (updates, cut) => {
        const events = eventsOf(updates.map((each) => ({ ...each, artifactId: "a", append: true })));
        const partsOf = (some: typeof events): readonly Part[] => read(logOf(some), true).artifacts?.[0]?.parts ?? [];
        const taken = partsOf(events.slice(0, cut));
        const whole = partsOf(events);
        const joined = { artifactId: "a", parts: [...taken, ...contentAfter(whole, contentLength(taken))] };
        expect(textOf(joined)).toBe(textOf({ artifactId: "a", parts: whole }));
      }),
      { seed, numRuns },
    );
  });

  test("of a task of megabytes are merged in pieces that are never joined", () => {
    const text = '"é\\🙂'.repeat(1000);
    const events = eventsOf(
      Array.from({ length: 400 }, () => ({ artifactId: "a", parts: [{ text }], append: true, name: undefined })),
    );
    const { pieces, task } = assembleLog(logOf(events), { artifacts: true, mergeTextParts: true });
    expect(pieces?.length).toBeGreaterThan(10);
    expect(task.artifacts).toEqual([{ artifactId: "a", parts: [{ text: text.repeat(400) }] }]);
  });
});
