import { resolve } from "node:path";
import type { Artifact, Message, StreamResponse, Task, TaskState } from "@parley/a2a";
import { isInterrupted, isTerminal } from "@parley/a2a/model";
import { TaskView } from "@parley/a2a/client";
import { saveArtifact } from "./artifacts.ts";
import type { Hints } from "./hints.ts";
import type { Io, Signal } from "./io.ts";
import { terminalProgress, type Progress } from "./output/progress.ts";
import { endedBadly } from "./output/states.ts";
import { jsonLine } from "@parley/conform/terminal";

export interface FollowOptions {
  readonly json?: boolean;
  /** Folder to save artifacts in. */
  readonly out?: string;
}

export interface Follow {
  readonly hints: Hints;
  readonly options: FollowOptions;
  /** Whether the caller knows the task already: what the first snapshot contains is then not shown as new. */
  readonly known?: boolean;
  /** Whether the events may end before the task does. */
  readonly mayEndEarly?: boolean;
}

/** Exit codes of shells for processes that a signal ended. */
const signalCodes: Readonly<Record<Signal, number>> = { SIGINT: 130, SIGTERM: 143 };

/** Output of `--json`: each event as a line of JSON on standard output, everything else on standard error. */
function jsonProgress(io: Io): Progress {
  return {
    received: (event) => io.stdout.write(`${jsonLine(event)}\n`),
    known() {},
    show() {},
    end() {},
    note: (text) => io.stderr.write(`${text}\n`),
  };
}

/** The number of parts of each artifact. A different number means that the artifact has changed. */
function partCounts(task: Task | undefined): ReadonlyMap<string, number> {
  return new Map((task?.artifacts ?? []).map(({ artifactId, parts }) => [artifactId, parts.length]));
}

/** The parts of a direct reply that are not text, as an artifact to be saved. */
function filesOf(message: Message | undefined): readonly Artifact[] {
  const parts = (message?.parts ?? []).filter((part) => part.text === undefined);
  return message === undefined || parts.length === 0 ? [] : [{ artifactId: message.messageId, name: "reply", parts }];
}

/** What the user can do about a task that waits for input or authorization. */
function waiting(state: TaskState | undefined, id: string, hints: Hints): string | undefined {
  if (state === "TASK_STATE_INPUT_REQUIRED") return `The agent waits for your answer:\n  ${hints.answer(id)}`;
  if (state === "TASK_STATE_AUTH_REQUIRED") {
    return `The agent waits for an authorization. Give it as the agent asks, then:\n  ${hints.watch(id)}`;
  }
  return undefined;
}

/**
 * Shows the events of a call until they end, saves artifacts, and prints commands that continue the task.
 *
 * @returns the exit code: 1 for a task that failed, was rejected or canceled; 130 or 143 after a signal.
 */
export async function follow(
  io: Io,
  start: (signal: AbortSignal) => AsyncIterable<StreamResponse>,
  { hints, options, known = false, mayEndEarly = false }: Follow,
): Promise<number> {
  const progress = options.json === true ? jsonProgress(io) : terminalProgress(io);
  const view = new TaskView();
  const interrupt = new AbortController();
  let signal: Signal | undefined;
  const release = io.onInterrupt((name) => {
    signal = name;
    interrupt.abort();
  });
  let answered = false;
  let old: ReadonlyMap<string, number> | undefined = known ? undefined : new Map();
  /**
   * The first snapshot, while it is not shown: a known task may still be in the interrupted state that this message ends. It is shown only
   * if no other event follows.
   */
  let held: StreamResponse | undefined;
  let taskId: string | undefined;
  let state: TaskState | undefined;

  function show(event: StreamResponse): void {
    progress.show(event);
    taskId ??= event.task?.id ?? event.statusUpdate?.taskId ?? event.artifactUpdate?.taskId;
    const now = event.task?.status.state ?? event.statusUpdate?.status.state ?? state;
    if (now === state || taskId === undefined) return;
    state = now;
    const hint = waiting(state, taskId, hints);
    if (hint !== undefined) progress.note(hint);
  }

  try {
    for await (const event of start(interrupt.signal)) {
      answered = true;
      held = undefined;
      if (options.out !== undefined) view.apply(event);
      progress.received(event);
      if (old === undefined && event.task !== undefined) {
        taskId = event.task.id;
        old = partCounts(event.task);
        progress.known(event.task);
        if (isInterrupted(event.task.status.state)) {
          held = event;
          continue;
        }
      }
      show(event);
    }
    if (held !== undefined) show(held);
  } catch (error) {
    if (signal === undefined) {
      if (taskId !== undefined) progress.note(`To see the rest of the task:\n  ${hints.watch(taskId)}`);
      throw error;
    }
  } finally {
    release();
    progress.end();
  }

  if (signal !== undefined) {
    progress.note(
      taskId === undefined
        ? `Interrupted before the agent answered; it may still be working:\n  ${hints.list()}`
        : `Interrupted; the task goes on. To watch or cancel it:\n  ${hints.watch(taskId)}\n  ${hints.cancel(taskId)}`,
    );
    return signalCodes[signal];
  }
  if (options.out !== undefined) {
    const folder = resolve(io.cwd, options.out);
    for (const artifact of [...(view.task?.artifacts ?? []), ...filesOf(view.message)]) {
      if (old?.get(artifact.artifactId) === artifact.parts.length) continue;
      for (const path of await saveArtifact(folder, artifact)) progress.note(`saved ${path}`);
    }
  }
  if (!answered) {
    progress.note("parley: the agent sent no answer");
    return 1;
  }
  if (taskId === undefined) return 0;
  if (state !== undefined && !isTerminal(state) && !isInterrupted(state)) {
    progress.note(`The task goes on. To watch or cancel it:\n  ${hints.watch(taskId)}\n  ${hints.cancel(taskId)}`);
    return mayEndEarly ? 0 : 1;
  }
  return state !== undefined && endedBadly(state) ? 1 : 0;
}
