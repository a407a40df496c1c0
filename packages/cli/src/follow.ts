import type { Artifact, JsonObject, Message, StreamResponse, Task, TaskState } from "@parley/a2a/internal/model/index";
import { isInterrupted, isTerminal } from "@parley/a2a/model";
import { readAuthorization, type FileFetch } from "@parley/a2a/internal/client/index";
import { Saver } from "./artifacts.ts";
import { type Field, formIn } from "@parley/a2a/internal/schema/form";
import { fill } from "./form.ts";
import type { Hints } from "./invocation.ts";
import type { Io, Signal } from "./io.ts";
import { TerminalProgress, type Progress } from "./output/progress.ts";
import { endedBadly } from "./output/text.ts";
import { jsonLine, line } from "@parley/a2a/internal/base/display";

export interface FollowOptions {
  readonly json?: boolean;
  /** Folder or file to save artifacts in. */
  readonly out?: string;
  /** Whether existing files are replaced. */
  readonly overwrite?: boolean;
  /** Whether to save files from origins other than the agent's, too. */
  readonly fetchUrls?: boolean;
  /** Whether data is shown in full on a terminal. */
  readonly full?: boolean;
}

export interface Follow {
  /** Reads files that the agent gives as a URL. */
  readonly fetch?: FileFetch | undefined;
  readonly hints: Hints;
  readonly options: FollowOptions;
  /** Whether the caller already knows the task, so that its first snapshot is not shown as new. */
  readonly known?: boolean;
  /** Whether a call begins with a snapshot of a known task. */
  readonly streams?: boolean;
  /** Whether the events may end before the task does. */
  readonly mayEndEarly?: boolean;
  /** Sends the data of a form. Absent: the user is not asked to fill in forms. */
  readonly answer?: (taskId: string, data: JsonObject) => Start;
  /** Whether the stream stays open while the task waits for a form. It is then closed, so that the user can fill in the form. */
  readonly leavesAtForm?: boolean;
  /** A note to show before an event. */
  readonly about?: (event: StreamResponse) => string | undefined;
}

/** Begins a call. */
export type Start = (signal: AbortSignal) => AsyncIterable<StreamResponse>;

/** Exit codes of a shell for these signals. */
const signalCodes: Readonly<Record<Signal, number>> = { SIGINT: 130, SIGTERM: 143 };

/** Output of `--json`: each event as a line of JSON on standard output, everything else on standard error. */
function jsonProgress(io: Io): Progress {
  return {
    received: (event) => io.stdout.write(`${jsonLine(event)}\n`),
    hasFiles: false,
    known() {},
    show() {},
    end() {},
    note: (text) => io.stderr.write(`${text}\n`),
  };
}

/** The parts of a direct reply that are not text, as an artifact to save. */
function filesOf(message: Message | undefined): readonly Artifact[] {
  const parts = (message?.parts ?? []).filter((part) => part.text === undefined);
  return message === undefined || parts.length === 0 ? [] : [{ artifactId: message.messageId, name: "reply", parts }];
}

/** Hints for the user of a task that waits for input or authorization. */
function waiting(
  state: TaskState | undefined,
  message: Message | undefined,
  id: string,
  hints: Hints,
): string | undefined {
  if (state === "TASK_STATE_INPUT_REQUIRED") {
    const form = formIn(message);
    if (form !== undefined) return `The agent is waiting for a form:\n  ${hints.fill(id, form.sample)}`;
    return `The agent is waiting for your answer:\n  ${hints.answer(id)}`;
  }
  if (state === "TASK_STATE_AUTH_REQUIRED") {
    const request = readAuthorization(message);
    if (request?.url !== undefined) return linkOf(request.url, request.expiresAt) + `  ${hints.watch(id)}`;
    return `The agent is waiting for an authorization. Authorize it as the agent asks, then run:\n  ${hints.watch(id)}`;
  }
  return undefined;
}

/** The link of an authorization. Its host comes first, because the agent chose the link. */
function linkOf(url: string, expiresAt: string | undefined): string {
  const until = expiresAt === undefined ? "" : `, until ${line(expiresAt)}`;
  return (
    `The agent is waiting for an authorization. Authorize it at ${line(new URL(url).host)}${until}:\n` +
    `  ${line(url, 4096)}\n` +
    "The task then continues. To watch it:\n"
  );
}

/**
 * Shows the events of a call until they end, saves artifacts, and prints commands that continue the task.
 *
 * @returns the exit code: 1 for a task that failed, was rejected or was canceled; 130 or 143 after a signal.
 */
export async function follow(io: Io, start: Start, how: Follow): Promise<number> {
  const call = new FollowedCall(io, how);
  await call.prepare();
  const interrupt = new AbortController();
  let signal: Signal | undefined;
  const release = io.onInterrupt((name) => {
    signal = name;
    interrupt.abort();
  });
  try {
    for (let next: Start | undefined = start; next !== undefined; next = await call.filled())
      await call.read(next(interrupt.signal));
  } catch (error) {
    await call.discard();
    if (signal === undefined) throw call.failed(error);
  } finally {
    release();
    call.progress.end();
  }
  if (signal === undefined) return call.ended();
  await call.discard();
  return call.interrupted(signal);
}

/** A call whose events are shown. */
class FollowedCall {
  readonly progress: Progress;
  readonly #io: Io;
  readonly #how: Follow;
  /** Saves artifacts with `--out`. */
  #saver: Saver | undefined;
  /** Whether the task that the caller knows has been seen. */
  #seen: boolean;
  #answered = false;
  /** The form that the task waits for, and the command that fills it in. */
  #form: { readonly fields: readonly Field[]; readonly hint: string } | undefined;
  /** The last answers of the user. */
  #data: JsonObject = {};
  #taskId: string | undefined;
  #state: TaskState | undefined;

  constructor(io: Io, how: Follow) {
    this.#io = io;
    this.#how = how;
    this.progress = how.options.json === true ? jsonProgress(io) : new TerminalProgress(io, how.options.full === true);
    this.#seen = how.known !== true;
  }

  /** Checks where artifacts are saved, before anything is sent. */
  async prepare(): Promise<void> {
    const { fetch, options } = this.#how;
    this.#saver = await Saver.for(this.#io, { ...options, fetch }, (text) => this.progress.note(text));
  }

  /** Removes files that are not complete. */
  async discard(): Promise<void> {
    await this.#saver?.discard();
  }

  async read(events: AsyncIterable<StreamResponse>): Promise<void> {
    // The first snapshot may still have the interrupted state from before this message. Shown only if no event follows.
    let held: StreamResponse | undefined;
    for await (const event of events) {
      this.#answered = true;
      held = undefined;
      const about = this.#how.about?.(event);
      if (about !== undefined) this.progress.note(about);
      this.progress.received(event);
      if (!this.#seen && event.task !== undefined) {
        this.#know(event.task);
        if (isInterrupted(event.task.status.state)) held = event;
      }
      if (held === undefined) this.#show(event);
      await this.#saver?.take(event);
      for (const artifact of filesOf(event.message)) await this.#saver?.save(artifact);
      if (this.#form !== undefined && this.#how.leavesAtForm === true) return;
    }
    if (held !== undefined) this.#show(held);
  }

  /** Lets the user fill in the form of the task. `undefined`: no form, or the user left it. */
  async filled(): Promise<Start | undefined> {
    const form = this.#form;
    const { answer } = this.#how;
    if (form === undefined || answer === undefined || this.#taskId === undefined) return undefined;
    this.#form = undefined;
    this.progress.note("The agent is waiting for a form. Press Ctrl-D to leave it.");
    const data = await fill(this.#io, form.fields, this.#data);
    if (data === undefined) {
      this.progress.note(`\n${form.hint}`);
      return undefined;
    }
    this.#data = data;
    // The agent may repeat the question, or the stream may repeat the old state.
    this.#state = undefined;
    this.#seen = this.#how.streams !== true;
    return answer(this.#taskId, data);
  }

  /** Prints what the user can do, and returns the error. */
  failed(error: unknown): unknown {
    const { hints } = this.#how;
    if (this.#taskId !== undefined) this.progress.note(`To see the rest of the task:\n  ${hints.watch(this.#taskId)}`);
    return error;
  }

  interrupted(signal: Signal): number {
    const { hints } = this.#how;
    const id = this.#taskId;
    this.progress.note(
      id === undefined
        ? `Interrupted before the agent answered; it may still be working. To list your tasks:\n  ${hints.list()}`
        : `Interrupted; the task keeps running. To watch or cancel it:\n  ${hints.watch(id)}\n  ${hints.cancel(id)}`,
    );
    return signalCodes[signal];
  }

  async ended(): Promise<number> {
    const { hints, mayEndEarly = false } = this.#how;
    const id = this.#taskId;
    const state = this.#state;
    await this.#saver?.end();
    if (!this.#answered) {
      this.progress.note("parley: the agent sent no answer");
      return 1;
    }
    if (id === undefined || state === undefined) return 0;
    if (!isTerminal(state) && !isInterrupted(state)) {
      this.progress.note(`The task keeps running. To watch or cancel it:\n  ${hints.watch(id)}\n  ${hints.cancel(id)}`);
      return mayEndEarly ? 0 : 1;
    }
    if (this.#saver === undefined && this.progress.hasFiles && isTerminal(state))
      this.progress.note(`To save the files:\n  ${hints.save(id)}`);
    return endedBadly(state) ? 1 : 0;
  }

  #know(task: Task): void {
    this.#taskId = task.id;
    this.#seen = true;
    this.#saver?.know(task);
    this.progress.known(task);
  }

  #show(event: StreamResponse): void {
    this.progress.show(event);
    this.#taskId ??= event.task?.id ?? event.statusUpdate?.taskId ?? event.artifactUpdate?.taskId;
    const status = event.task?.status ?? event.statusUpdate?.status;
    const state = status?.state ?? this.#state;
    if (state === this.#state || this.#taskId === undefined) return;
    this.#state = state;
    this.#form = undefined;
    const hint = waiting(state, status?.message, this.#taskId, this.#how.hints);
    if (hint === undefined) return;
    const fields = this.#how.answer && formIn(status?.message)?.fields;
    if (state === "TASK_STATE_INPUT_REQUIRED" && fields !== undefined) this.#form = { fields, hint };
    else this.progress.note(hint);
  }
}
