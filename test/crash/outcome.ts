import { isTerminal, TaskFold, text, textOf, type Artifact, type Task } from "@parley/a2a/model";
import { eventOf, type LogRecord } from "@parley/a2a/internal/model/index";
import type { ListPosition, Store } from "@parley/server/store";
import { callContext, inProcess } from "@parley/testing";
import { expect } from "vitest";
import type { AgentName, Seen, Story } from "./load.ts";
import { planner, told } from "./plan.ts";

/** A stored task, and its log. */
export interface Outcome {
  readonly task: Task;
  readonly log: readonly LogRecord[];
}

/** All tasks of an agent by their ids, as callers read them. */
export async function outcomesOf(store: Store, agent: AgentName): Promise<ReadonlyMap<string, Outcome>> {
  const scope = { agent: `/${agent}` };
  const found = new Map<string, Outcome>();
  let after: ListPosition | undefined;
  do {
    const page = await store.list(scope, {
      limit: 100,
      artifacts: true,
      mergeTextParts: true,
      ...(after && { after }),
    });
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

/** Expects a log without gaps that folds to the task. */
export function expectWhole({ task, log }: Outcome): void {
  expect(log.map(({ seq }) => seq)).toEqual(log.map((_, at) => at + 1));
  expect(task).toEqual(foldOf(log));
}

function foldOf(log: readonly LogRecord[]): Task {
  const fold = new TaskFold(undefined, { mergeTextParts: true });
  for (const record of log) expect(fold.apply(eventOf(record), { keep: record.keep === true })).toBeUndefined();
  return fold.snapshot();
}

/** Expects the stream to have the task at its start and all later events, once and in order, to the end. */
export function expectComplete({ events }: Seen, { task, log }: Outcome): void {
  const [first, ...rest] = events;
  if (first?.event.task === undefined) throw new Error(`A stream of ${task.id} did not begin with the task`);
  if (first.seq === undefined) {
    // The task had ended before the stream began.
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

/** The artifacts that the same messages create without a crash. */
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

/** Artifacts in comparable form. If chunks depend on the time, only their text counts. */
export function comparable(artifacts: readonly Artifact[] = []): readonly Artifact[] {
  return artifacts.map((artifact) =>
    artifact.artifactId.startsWith(told) ? { ...artifact, parts: [text(textOf(artifact))] } : artifact,
  );
}

/** Expects the first part of the artifacts that the task would have without a crash. */
export function expectBeginning(artifacts: readonly Artifact[] = [], whole: readonly Artifact[]): void {
  for (const { artifactId, parts } of comparable(artifacts)) {
    const said = comparable(whole).find((one) => one.artifactId === artifactId)?.parts ?? [];
    if (artifactId.startsWith(told)) {
      expect(said[0]?.text?.startsWith(parts[0]?.text ?? "")).toBe(true);
      continue;
    }
    const last = said[parts.length - 1];
    const cut = parts.at(-1)?.text;
    const isBegun = cut !== undefined && last?.text?.startsWith(cut) === true;
    expect(parts).toEqual([...said.slice(0, parts.length - 1), isBegun ? { ...last, text: cut } : last]);
  }
}
