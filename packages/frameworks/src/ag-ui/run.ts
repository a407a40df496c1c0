import { AbstractAgent, EventType, type BaseEvent, type Message, type RunAgentInput } from "@ag-ui/client";
import type { Client, EventStream } from "@parley/a2a";
import { A2AError, isInterrupted, type StreamResponse, type Task } from "@parley/a2a/model";
import type { A2AMetadata } from "../shared/types.ts";
import { interruptsOf, RunEvents } from "./events.ts";
import type { Thread } from "./messages.ts";

/** Receives the events of a run. */
interface Reader {
  next(event: BaseEvent): void;
  complete(): void;
}

/** The inputs for reading an answer. */
interface Begin {
  readonly client: Client;
  readonly answerId: string;
  readonly known: A2AMetadata["a2a"];
  /** Messages that the page has. */
  readonly messages: readonly Message[];
}

/** AG-UI 1.0 has an outcome for canceled runs. */
const knowsCancelled = "maxProtocolVersion" in AbstractAgent.prototype;

/** One run: from its first event to its last. */
export class Run {
  readonly #ids: Pick<RunAgentInput, "threadId" | "runId">;
  readonly #maxFileBytes: number;
  readonly #reader: Reader;
  readonly #reading = new AbortController();
  #client: Client | undefined;
  #events: RunEvents | undefined;
  #noted: Pick<Task, "id" | "status"> | undefined;
  #isOver = false;
  #isCanceling = false;

  constructor({ threadId, runId }: RunAgentInput, maxFileBytes: number, reader: Reader) {
    this.#ids = { threadId, runId };
    this.#maxFileBytes = maxFileBytes;
    this.#reader = reader;
  }

  /** Aborted when the run is no longer read. */
  get signal(): AbortSignal {
    return this.#reading.signal;
  }

  /** Whether the page has the last event. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** The known state of the thread after the run. */
  get thread(): Thread {
    const { contextId, taskId } = this.#events?.metadata ?? {};
    const status = this.#events?.status;
    const task = this.#noted ?? (taskId !== undefined && status !== undefined ? { id: taskId, status } : undefined);
    return { ...(contextId !== undefined && { contextId }), ...(task !== undefined && { task }) };
  }

  /** Runs `start()`, from RUN_STARTED to RUN_FINISHED or RUN_ERROR. */
  async complete(start: (run: Run) => Promise<void>): Promise<void> {
    this.emit({ type: EventType.RUN_STARTED, ...this.#ids });
    try {
      await start(this);
      this.#events?.finish();
      this.#finish();
    } catch (error) {
      const code = error instanceof A2AError ? error.code : undefined;
      const message = error instanceof Error ? error.message : String(error);
      this.#end({ type: EventType.RUN_ERROR, message, ...(code !== undefined && { code }) });
    }
  }

  emit(event: BaseEvent): void {
    if (!this.#isOver) this.#reader.next(event);
  }

  begin({ client, ...init }: Begin): void {
    this.#client = client;
    this.#events = new RunEvents({ ...init, maxFileBytes: this.#maxFileBytes }, (event) => this.emit(event));
  }

  apply(event: StreamResponse): void {
    this.#events?.apply(event);
  }

  /** Records the state of a task whose content the page already has. */
  note({ id, status }: Task): void {
    this.#noted = { id, status };
  }

  async read(events: EventStream): Promise<void> {
    for await (const event of events) {
      this.apply(event);
      if (this.#isCanceling) await this.#cancel();
      if (await this.#waitsForCredentials()) break;
    }
  }

  /** AUTH_REQUIRED leaves the stream open, though the task may wait for a message. Reads the current state, because a replay has earlier states. */
  async #waitsForCredentials(): Promise<boolean> {
    const { taskId } = this.#events?.metadata ?? {};
    if (taskId === undefined || this.#events?.status?.state !== "TASK_STATE_AUTH_REQUIRED") return false;
    const task = await this.#client?.getTask(taskId, { signal: this.signal });
    return task?.status.state === "TASK_STATE_AUTH_REQUIRED";
  }

  /** Ends the run. With `cancel`, also cancels the task, now or as soon as its id is known. */
  stop(how: "cancel" | "leave"): void {
    if (this.#isOver) return;
    this.#isCanceling = how === "cancel";
    this.#end(this.#cancelled());
    if (this.#isCanceling) void this.#cancel();
  }

  /** Stops reading. The task continues. */
  leave(): void {
    this.#isOver = true;
    if (!this.#isCanceling) this.#reading.abort();
  }

  /** Ignores errors, such as an ended task or a failed connection, because the page no longer waits. */
  async #cancel(): Promise<void> {
    const { taskId } = this.#events?.metadata ?? {};
    if (taskId === undefined) return;
    await this.#client?.cancelTask(taskId).catch(() => undefined);
    this.#reading.abort();
  }

  #finish(): void {
    const { task } = this.thread;
    const error = this.#noted === undefined ? this.#events?.error : undefined;
    if (error !== undefined) {
      const code = task?.status.state;
      return this.#end({ type: EventType.RUN_ERROR, message: error, ...(code !== undefined && { code }) });
    }
    if (task?.status.state === "TASK_STATE_CANCELED" && this.#noted === undefined) return this.#end(this.#cancelled());
    const { threadId } = this.#ids;
    const isWaiting = task !== undefined && isInterrupted(task.status.state);
    const interrupts = isWaiting ? interruptsOf(task.status, task.id, threadId) : [];
    const { contextId = threadId } = this.thread;
    const result = { contextId, ...(task !== undefined && { taskId: task.id, state: task.status.state }) };
    this.#end({
      type: EventType.RUN_FINISHED,
      ...this.#ids,
      ...(isWaiting ? { outcome: { type: "interrupt", interrupts } } : { result }),
    });
  }

  #cancelled(): BaseEvent {
    const outcome = knowsCancelled && { outcome: { type: "cancelled" } };
    return { type: EventType.RUN_FINISHED, ...this.#ids, ...outcome };
  }

  #end(event: BaseEvent): void {
    this.#events?.close();
    this.emit(event);
    if (!this.#isOver) this.#reader.complete();
    this.#isOver = true;
  }
}
