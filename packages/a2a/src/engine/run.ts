import { deferred, type Deferred, type Logger } from "../base/index.ts";
import {
  A2AError,
  isInterrupted,
  isTerminal,
  mayMove,
  type JsonValue,
  type Message,
  type NewRecord,
  type Task,
} from "../model/index.ts";
import type { AgentEvent, AgentOutput, AgentYield } from "../protocol/index.ts";
import type { ContextKey, OnceEffect, OnceRecord, TaskEffect, TaskKey } from "../store/index.ts";
import { TaskArtifacts } from "./artifacts.ts";
import type { Committer } from "./committer.ts";
import type { Conversations, ContextView } from "./conversations.ts";
import type { Board, Channel } from "./live.ts";
import { LogWriter, type Loss, type TurnEnd, type WriterStart } from "./log-writer.ts";
import type { EngineSettings, HostedAgent } from "./options.ts";
import {
  agentMessage,
  agentMistake,
  artifactRecord,
  statusRecord,
  taskRecord,
  type Origin,
  type StatusInit,
  type StoredCall,
} from "./records.ts";
import { Replay } from "./replay.ts";
import { createTurn } from "./turn.ts";

/** The rooms of the engine that a run works with. */
export interface RunRooms {
  readonly settings: EngineSettings;
  readonly committer: Committer;
  readonly board: Board;
  readonly conversations: Conversations;
  /** Called when the run can write no more. */
  readonly onOver: (run: Run) => void;
}

export interface RunInit {
  readonly hosted: HostedAgent;
  readonly key: TaskKey;
  readonly contextId: string;
  /** Whether the context begins with this message. */
  readonly freshContext: boolean;
  readonly message: Message;
  readonly call: StoredCall;
  /** Where the task stands; absent: this message makes it, if the agent does not answer directly. */
  readonly start?: WriterStart;
  readonly task?: Task;
  /** JSON text of what the lost run had saved. */
  readonly checkpoint?: string;
  /** Remembered with the task, or with a direct reply where those are durable. */
  readonly once?: OnceEffect;
}

/** What came of a message first: a direct answer, a task that stands, or the discovery that it was here before. */
export type First =
  | { readonly kind: "message"; readonly message: Message }
  | { readonly kind: "task"; readonly seq: number }
  | { readonly kind: "duplicate"; readonly once: OnceRecord };

/** A checkpoint as it is stored: the agent's value, and how far its events and ids had come. */
interface StoredCheckpoint {
  readonly value: JsonValue;
  readonly events: number;
  readonly ids: number;
}

/** Sentences that a client reads (D12); the cause is in the operator's log. */
export const safeSentences = {
  failed: "The agent failed and could not complete this task.",
  silent: "The agent gave no answer.",
  invalid: "The agent gave an invalid answer.",
  idle: "The agent gave no sign of life for too long.",
  late: "The agent did not finish in time.",
  lost: "The server was interrupted while it worked on this task, and the agent cannot resume it.",
  gaveUp: "The agent was interrupted too often while it worked on this task.",
  stopped: "The server was stopped while it worked on this task.",
} as const;

/** Executes the turns of one task, one after the other, under one lease (D6, D11). */
export class Run {
  readonly key: TaskKey;
  readonly hosted: HostedAgent;
  /** Settles with the first that can be told of the message. */
  readonly first: Promise<First>;
  /** Settles when nothing more will be written; never rejects. */
  readonly done: Promise<void>;
  /** For the time limits. */
  startedAt: number;
  lastSignAt: number;

  readonly #rooms: RunRooms;
  readonly #contextId: string;
  readonly #channel: Channel;
  readonly #writer: LogWriter;
  readonly #once: OnceEffect | undefined;
  readonly #logger: Logger;
  #message: Message;
  #call: StoredCall;
  #task: Task | undefined;
  #turn: number;
  #attempt: number;
  #input: number;
  #freshContext: boolean;
  #context: ContextView | undefined;
  #checkpoint: StoredCheckpoint | undefined;
  #replay: Replay | undefined;
  readonly #artifacts: TaskArtifacts;
  #events = 0;
  #ids = 0;
  #said = false;
  #exists: boolean;
  #closed = false;
  #leaving = false;
  #storeError: A2AError | undefined;
  #controller: AbortController | undefined;
  #time = 0;
  readonly #settleFirst: Deferred<First>;
  readonly #settleDone: Deferred<void>;

  constructor(rooms: RunRooms, init: RunInit) {
    const { settings, board, committer } = rooms;
    const { hosted, key, contextId, start } = init;
    this.#rooms = rooms;
    this.hosted = hosted;
    this.key = key;
    this.#contextId = contextId;
    this.#message = init.message;
    this.#call = init.call;
    this.#task = init.task;
    this.#once = init.once;
    this.#freshContext = init.freshContext;
    this.#turn = start?.run.turn ?? 1;
    this.#attempt = start?.run.attempt ?? 1;
    this.#input = start?.run.input ?? 1;
    this.#exists = start !== undefined;
    this.#artifacts = new TaskArtifacts(settings.store, key, start === undefined);
    this.#logger = settings.logger;
    this.startedAt = this.lastSignAt = settings.clock.now();
    if (init.checkpoint !== undefined) this.#checkpoint = JSON.parse(init.checkpoint) as StoredCheckpoint;
    this.#settleFirst = deferred();
    this.first = this.#settleFirst.promise;
    // Whoever waits hears of it; a run that nobody waits for must not count as an unhandled rejection.
    this.first.catch(() => {});
    this.#settleDone = deferred();
    this.done = this.#settleDone.promise;
    this.#channel = board.hold(key, contextId);
    if (start !== undefined) this.#channel.attach({ seq: start.seq, state: start.state, run: start.run });
    this.#writer = new LogWriter({
      committer,
      channel: this.#channel,
      task: key,
      contextId,
      ...(start !== undefined && { start }),
      lease: () => this.#acquire(),
      limits: settings.limits,
      onBorn: (seq) => this.#settleFirst.resolve({ kind: "task", seq }),
      onDuplicate: (once) => this.#settleFirst.resolve({ kind: "duplicate", once }),
      onOver: (loss, error) => this.#close(loss, error),
    });
  }

  /** Fence under which the run writes; `undefined` while there is no task. */
  get fence(): number | undefined {
    return this.#writer.fence;
  }

  /** Whether the run waits for somebody outside, so that its silence is no sign of trouble. */
  get waits(): boolean {
    return isInterrupted(this.#writer.state);
  }

  /** Makes the task although the agent has said nothing yet (§3.2.2 `returnImmediately`). */
  makeTask(): void {
    if (!this.#exists && !this.#closed) this.#create("TASK_STATE_SUBMITTED");
  }

  /** Another took the task away, or this node gives it up. */
  lose(loss: Loss, error?: unknown): void {
    this.#writer.lose(loss, error);
  }

  /** Ends the task as failed, whatever the agent is doing. */
  expire(sentence: string, reason: string): void {
    this.#failTask(sentence, new Error(reason));
  }

  /** Stops for good: a resumable task is left for another process, any other fails and says why. */
  async stop(): Promise<void> {
    if (this.#closed) return;
    if (!this.#exists) {
      this.#writer.lose("shutdown");
      return;
    }
    if (this.hosted.agent.resumable === true) {
      this.#leaving = true;
      this.#abort("The server stops");
      await this.#writer.handBack();
    } else this.#failTask(safeSentences.stopped, new Error("The server was stopped"));
  }

  /** Runs until the task is over, waits for its user, or is lost. Never rejects. */
  async execute(): Promise<void> {
    try {
      do await this.#runTurn();
      while (await this.#goesOn());
    } catch (error) {
      this.#failTask(safeSentences.failed, error);
    }
  }

  async #runTurn(): Promise<void> {
    const { conversations, settings } = this.#rooms;
    const context: ContextKey = { agent: this.key.agent, owner: this.key.owner, contextId: this.#contextId };
    this.#context = await conversations.open(context, this.#message, this.#freshContext);
    this.#freshContext = false;
    this.#said = false;
    if (this.#attempt > 1) {
      const { taskId } = this.key;
      const covered = this.#checkpoint?.events ?? 0;
      this.#events = covered;
      this.#ids = this.#checkpoint?.ids ?? 0;
      this.#said = covered > 0;
      this.#replay = new Replay(settings.store, this.key, taskId, this.#turn, this.#input, covered);
    }
    const turn = createTurn({
      message: this.#message,
      taskId: this.key.taskId,
      contextId: this.#contextId,
      task: this.#task,
      number: this.#turn,
      attempt: this.#attempt,
      checkpoint: this.#checkpoint?.value,
      call: this.#call,
      context: this.#context,
      logger: this.#logger,
      clock: settings.clock,
      signal: () => (this.#controller ??= this.#newController()).signal,
      makeId: () => `${this.#turn}-${(this.#ids += 1)}`,
      flush: () => this.#writer.flush(),
    });
    try {
      await this.#drive(this.hosted.agent.execute(turn));
      if (!this.#said) this.#failTask(safeSentences.silent, agentMistake("The agent ended its turn without an event"));
    } catch (error) {
      const { taskId } = this.key;
      if (this.#stopped) this.#logger.debug("An agent threw after its task was over", { taskId, cause: error });
      else this.#failTask(isMistake(error) ? safeSentences.invalid : safeSentences.failed, error);
    }
  }

  /** Whether nothing that the agent says counts any more. */
  get #stopped(): boolean {
    return this.#leaving || this.#closed || this.#writer.over || isTerminal(this.#writer.state);
  }

  async #drive(output: AgentOutput): Promise<void> {
    if (!isGenerator(output)) {
      const event = await output;
      if (event !== undefined) await this.#accept(event);
      return;
    }
    try {
      for (;;) {
        const step = await output.next();
        if (this.#stopped) break;
        if (step.value !== undefined) await this.#accept(step.value);
        if (step.done === true) return;
        if (this.#writer.full) await this.#writer.room();
        if (this.#stopped) break;
      }
    } catch (error) {
      // Its own error has ended the agent already; one of ours has not, and it may have something to clean up.
      void output.return().catch(() => {});
      throw error;
    }
    // The task is over and the agent is not. A failed append surfaces at the yield (D3).
    if (this.#storeError === undefined) await output.return();
    else await output.throw(this.#storeError);
  }

  /** Takes what the agent yielded. All of an array is stored together. */
  async #accept(yielded: AgentYield): Promise<void> {
    this.lastSignAt = this.#rooms.settings.clock.now();
    const events: readonly AgentEvent[] = isArray(yielded) ? yielded : [yielded];
    const [only] = events;
    if (!this.#exists && events.length === 1 && only?.kind === "reply") {
      await this.#replyDirectly(only);
      return;
    }
    const records: NewRecord[] = [];
    const effects: TaskEffect[] = [];
    for (const event of events) {
      if (event?.kind === "checkpoint") effects.push(this.#checkpointEffect(event.value));
      else records.push(await this.#record(event, records));
    }
    if (records.length > 0) this.#said = true;
    const unsaid = this.#replay === undefined ? records : await this.#replay.unsaid(records);
    if (this.#replay?.over === true) this.#replay = undefined;
    if (this.#stopped) return;
    if (!this.#exists) this.#create(only?.kind === "status" ? "TASK_STATE_SUBMITTED" : "TASK_STATE_WORKING");
    else if (unsaid[0]?.kind === "artifactUpdate" && this.#isAtRest) this.#begin();
    const change = this.#context?.takeChange();
    if (change !== undefined) effects.push({ effect: "contextState", value: change });
    if (unsaid.length > 0 || effects.length > 0) this.#writer.write(unsaid, effects);
  }

  async #record(event: AgentEvent, before: readonly NewRecord[]): Promise<NewRecord> {
    this.#events += 1;
    if (before.some(({ state }) => state !== undefined && isTerminal(state)))
      throw agentMistake("An event after the end");
    if (event?.kind === "artifact") {
      const record = artifactRecord(this.#origin(), event, this.#now());
      await this.#artifacts.note(event, this.#replay !== undefined);
      return record;
    }
    if (event?.kind === "status") return this.#status(event, "agent");
    if (event?.kind === "reply")
      return this.#status({ state: "TASK_STATE_COMPLETED", message: event.message }, "agent");
    throw agentMistake(`Not an event: ${describe(event)}`);
  }

  #status(status: StatusInit, actor: "agent" | "system"): NewRecord {
    if (this.#exists && this.#replay === undefined && !mayMove(this.#writer.state, status.state)) {
      throw agentMistake(`A task cannot go from ${this.#writer.state} to ${String(status.state)}`);
    }
    // Made of what a resumed run knows too, so that it says the same again (`Replay`).
    const messageId = `${this.key.taskId}-${this.#turn}-${actor === "agent" ? this.#events : actor}`;
    return statusRecord(this.#origin(), status, actor, messageId, this.#now());
  }

  #checkpointEffect(value: JsonValue): TaskEffect {
    const stored: StoredCheckpoint = { value, events: this.#events, ids: this.#ids };
    return { effect: "checkpoint", value: JSON.stringify(stored) };
  }

  async #replyDirectly(event: Extract<AgentEvent, { kind: "reply" }>): Promise<void> {
    const ids = { messageId: this.#rooms.settings.ids.next(), contextId: this.#contextId };
    const message = agentMessage(event.message, ids);
    this.#said = true;
    const { conversations } = this.#rooms;
    const context: ContextKey = { agent: this.key.agent, owner: this.key.owner, contextId: this.#contextId };
    await conversations.keepReply(context, this.#message, message, this.#context?.takeChange(), this.#once);
    this.#settleFirst.resolve({ kind: "message", message });
    this.#close(undefined, undefined);
  }

  #create(state: "TASK_STATE_SUBMITTED" | "TASK_STATE_WORKING"): void {
    this.#exists = true;
    const record = taskRecord(this.#origin(), state, this.#message, this.#call, this.#now());
    const run: TaskEffect = { effect: "run", run: { turn: 1, attempt: 1, input: 1 } };
    this.#writer.write([record], this.#once === undefined ? [run] : [run, this.#once]);
  }

  /** Whether results show that the agent works, although the state does not say so yet: it is new, or was authorized by another way (§7.6.1). */
  get #isAtRest(): boolean {
    return this.#writer.state === "TASK_STATE_SUBMITTED" || this.#writer.state === "TASK_STATE_AUTH_REQUIRED";
  }

  #begin(): void {
    this.#writer.write([this.#status({ state: "TASK_STATE_WORKING" }, "system")]);
  }

  /** Ends the turn; `true` when a message waits and its turn was begun instead (D11). */
  async #goesOn(): Promise<boolean> {
    while (!this.#stopped) {
      const end = await this.#endTurn();
      if (end === "ended" || this.#stopped) return false;
      if (await this.#nextTurn()) return true;
    }
    return false;
  }

  #endTurn(): Promise<TurnEnd> {
    const change = this.#context?.takeChange();
    if (change !== undefined) this.#writer.write([], [{ effect: "contextState", value: change }]);
    const { state } = this.#writer;
    const finish = isInterrupted(state) ? undefined : this.#status({ state: "TASK_STATE_COMPLETED" }, "system");
    return this.#writer.endTurn(finish);
  }

  /** Takes up the oldest message that waits, if one does. */
  async #nextTurn(): Promise<boolean> {
    const { store } = this.#rooms.settings;
    await this.#writer.flush();
    const { taskId } = this.key;
    const page = await store.read(this.key, taskId, { after: this.#input, limit: 2, kinds: ["message"] });
    if (page === undefined) throw new Error(`Task ${taskId} is gone from the store`);
    const [next, later] = page.records;
    this.#writer.sawLog(page.head.seq, later !== undefined);
    if (next === undefined) return false;
    this.#task = (await store.load(this.key, taskId, { artifacts: true }))?.task;
    this.#turn += 1;
    this.#attempt = 1;
    this.#input = next.seq;
    this.#message = JSON.parse(next.json) as Message;
    this.#call = JSON.parse(next.call ?? "null") as StoredCall;
    this.#checkpoint = undefined;
    this.#replay = undefined;
    this.#events = this.#ids = 0;
    this.startedAt = this.lastSignAt = this.#rooms.settings.clock.now();
    const wakes = isInterrupted(this.#writer.state) ? [this.#status({ state: "TASK_STATE_WORKING" }, "system")] : [];
    this.#writer.write(wakes, [
      { effect: "run", run: { turn: this.#turn, attempt: 1, input: next.seq } },
      { effect: "checkpoint", value: null },
    ]);
    return true;
  }

  #failTask(sentence: string, cause: unknown): void {
    if (this.#stopped) return;
    this.#logger.error("A task failed", { agent: this.key.agent, taskId: this.key.taskId, turn: this.#turn, cause });
    if (!this.#exists) this.#create("TASK_STATE_WORKING");
    const message = { parts: [{ text: sentence }] };
    this.#writer.write([this.#status({ state: "TASK_STATE_FAILED", message }, "system")]);
    this.#abort(sentence);
  }

  #close(loss: Loss | undefined, error: unknown): void {
    if (this.#closed) return;
    this.#closed = true;
    const { board, onOver } = this.#rooms;
    if (loss === "store") {
      this.#storeError = new A2AError("Unavailable", undefined, { cause: error });
      this.#logger.error("A run was given up because the store failed", { taskId: this.key.taskId, cause: error });
      this.#channel.fail(this.#storeError);
    }
    if (loss !== undefined) {
      this.#settleFirst.reject(this.#storeError ?? new A2AError("Unavailable"));
      this.#abort(`The run was ended: ${loss}`);
    }
    // A terminal task does not change: its readers may go on with what is at hand.
    if (this.#channel.head === undefined || !isTerminal(this.#channel.head.state)) this.#channel.detach();
    board.release(this.#channel);
    onOver(this);
    this.#settleDone.resolve();
  }

  #abort(reason: string): void {
    // Nobody may have asked for the signal yet, and then nobody needs to hear.
    this.#controller?.abort(new A2AError("Aborted", reason));
  }

  #newController(): AbortController {
    const controller = new AbortController();
    if (this.#closed) controller.abort(new A2AError("Aborted", "The task is over"));
    return controller;
  }

  #acquire(): TaskEffect {
    const { clock, lease } = this.#rooms.settings;
    const now = clock.now();
    return { effect: "lease", op: "acquire", holder: lease.holder, now, until: now + lease.ttl };
  }

  #origin(): Origin {
    return {
      taskId: this.key.taskId,
      contextId: this.#contextId,
      turn: this.#turn,
      attempt: this.#attempt,
      extensions: this.#call.extensions,
      trace: this.#call.trace,
    };
  }

  /** Time that never runs backwards within a task. */
  #now(): number {
    this.#time = Math.max(this.#time, this.#rooms.settings.clock.now());
    return this.#time;
  }
}

function isGenerator(output: AgentOutput): output is Extract<AgentOutput, AsyncGenerator<unknown, unknown, void>> {
  return typeof output === "object" && output !== null && Symbol.asyncIterator in output;
}

function isMistake(error: unknown): boolean {
  return error instanceof A2AError && error.code === "InvalidAgentResponse";
}

function isArray(yielded: AgentYield): yielded is readonly AgentEvent[] {
  return Array.isArray(yielded);
}

function describe(value: unknown): string {
  try {
    return (JSON.stringify(value) ?? String(value)).slice(0, 200);
  } catch {
    return typeof value;
  }
}
