import { text, type Artifact, type Task } from "@parley/a2a";
import { eventOf, isTerminal, TaskFold, textOf, type LogRecord } from "@parley/a2a/model";
import type { ListPosition, Store } from "@parley/a2a/store";
import { callContext, inProcess } from "@parley/a2a/testing";
import { expect } from "vitest";
import type { AgentName, Seen, Story } from "./load.ts";
import { planner, told } from "./plan.ts";

/** What a task came to: as the store gives it, and its log. */
export interface Outcome {
  readonly task: Task;
  readonly log: readonly LogRecord[];
}

/** Every task of an agent, by its id. */
export async function outcomesOf(store: Store, agent: AgentName): Promise<ReadonlyMap<string, Outcome>> {
  const scope = { agent: `/${agent}` };
  const found = new Map<string, Outcome>();
  let after: ListPosition | undefined;
  do {
    const page = await store.list(scope, { limit: 100, artifacts: true, ...(after && { after }) });
    for (const { task } of page.tasks) {
      const log: LogRecord[] = [];
      const seq = (await store.head(scope, task.id))?.seq ?? 0;
      while (log.length < seq) {
        const read = await store.read(scope, task.id, { after: log.length, limit: 1000 });
        if (read === undefined || read.records.length === 0) break;
        log.push(...read.records);
      }
      found.set(task.id, { task, log });
    }
    after = page.next;
  } while (after !== undefined);
  return found;
}

/** The log has no gaps, and the task that the store gives is its fold. */
export function expectWhole({ task, log }: Outcome): void {
  expect(log.map(({ seq }) => seq)).toEqual(log.map((_, at) => at + 1));
  expect(task).toEqual(foldOf(log));
}

function foldOf(log: readonly LogRecord[]): Task {
  const fold = new TaskFold();
  for (const record of log) expect(fold.apply(eventOf(record), { keep: record.keep === true })).toBeUndefined();
  return fold.snapshot();
}

/** A stream showed the task as it stood, then all that came after, once and in order, to its end. */
export function expectComplete({ events }: Seen, { task, log }: Outcome): void {
  const [first, ...rest] = events;
  if (first?.event.task === undefined) throw new Error(`A stream of ${task.id} did not begin with the task`);
  if (first.seq === undefined) {
    // The task was over before the stream began.
    expect(rest).toEqual([]);
    expect(first.event.task).toEqual(task);
    return;
  }
  const from = first.seq;
  expect(first.event.task).toEqual(foldOf(log.slice(0, from)));
  const to = rest.at(-1)?.seq ?? from;
  const due = log.filter(({ seq, kind }) => seq > from && seq <= to && kind !== "message");
  expect(rest.map(({ seq }) => seq)).toEqual(due.map(({ seq }) => seq));
  expect(rest.map(({ event }) => event)).toEqual(due.map(eventOf));
  const { state } = log[to - 1] ?? {};
  if (state !== "TASK_STATE_INPUT_REQUIRED") expect([state && isTerminal(state), to]).toEqual([true, log.length]);
}

/** What the messages of a story come to where nothing goes wrong. */
export async function undisturbed({ agent, texts }: Story): Promise<readonly Artifact[]> {
  const { service, engine } = inProcess(planner({ resumable: agent === "resumable", pauses: false }));
  let task: Task | undefined;
  for (const words of texts.filter((one) => !one.startsWith("note"))) {
    const message = { messageId: words, role: "ROLE_USER", parts: [{ text: words }] } as const;
    const request = { message: task === undefined ? message : { ...message, taskId: task.id } };
    ({ task } = (await service.call("SendMessage", request, callContext())).payload.value);
  }
  await engine.close();
  const notes = texts.flatMap((words) => (words.startsWith("note ") ? [words.slice(5)] : []));
  return [
    ...(task?.artifacts ?? []),
    ...notes.map((note) => ({ artifactId: `note-${note}`, parts: [{ text: note }] })),
  ];
}

/** Artifacts that can be compared: where time decides about the chunks, only their text counts. */
export function comparable(artifacts: readonly Artifact[] = []): readonly Artifact[] {
  return artifacts.map((artifact) =>
    artifact.artifactId.startsWith(told) ? { ...artifact, parts: [text(textOf(artifact))] } : artifact,
  );
}

/** What a lost task had said is the beginning of what it would have said. */
export function expectBeginning(artifacts: readonly Artifact[] = [], whole: readonly Artifact[]): void {
  for (const { artifactId, parts } of comparable(artifacts)) {
    const said = comparable(whole).find((one) => one.artifactId === artifactId)?.parts ?? [];
    if (artifactId.startsWith(told)) {
      expect(said[0]?.text?.startsWith(parts[0]?.text ?? "")).toBe(true);
      continue;
    }
    expect(parts).toEqual(said.slice(0, parts.length));
  }
}
