import { deferred, utf8Length, type Deferred } from "../../base/index.ts";
import {
  A2AError,
  isInterrupted,
  isTerminal,
  type LogRecord,
  type Message,
  type NewRecord,
  type Task,
  type TaskState,
} from "../../model/index.ts";
import {
  TurnAborted,
  type AgentEvent,
  type AgentOutput,
  type AgentYield,
  type ByteBudget,
  type Principal,
  type TurnAbortKind,
  type TurnSignal,
} from "../../protocol/index.ts";
import {
  defaultPageBytes,
  type ContextKey,
  type LogPage,
  type OnceEffect,
  type OnceRecord,
  type TaskEffect,
  type TaskKey,
} from "../../store/index.ts";
import { taskIsFull } from "../bytes.ts";
import type { Committer } from "../log/committer.ts";
import type { Conversations, ContextView } from "../conversations.ts";
import { Intake, type StoredCheckpoint, type Taken, type TurnAtHand } from "./intake.ts";
import type { LiveLog } from "../log/live-log.ts";
import type { LiveLogs } from "../log/live-logs.ts";
import { LogWriter, type Loss, type TurnEnd, type WriterStart } from "../log/writer.ts";
import type { EngineSettings, HostedAgent } from "../options.ts";
import type { Pace } from "./pace.ts";
import { agentMistake, isMistake, nameOfRecord } from "../mistakes.ts";
import { agentMessage, type StoredCall } from "../log/records.ts";
import { safeSentences } from "./sentences.ts";
import { EngineTurn, type TurnHost } from "./turn.ts";

/** The rooms of the engine that a run works with. */
export interface RunRooms {
  readonly settings: EngineSettings;
  readonly committer: Committer;
  readonly liveLogs: LiveLogs;
  readonly conversations: Conversations;
  readonly pace: Pace;
  readonly budget: ByteBudget;
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
  /** The caller as it came; absent: as it was stored. */
  readonly principal?: Principal;
  /** Where the task stands; absent: this message makes it, if the agent does not answer directly. */
  readonly start?: WriterStart;
  readonly task?: Task;
  /** JSON text of what the lost run had saved. */
  readonly checkpoint?: string;
  /** Remembered with the task, or with a direct reply where those are durable. */
  readonly once?: OnceEffect | undefined;
  /** What of the budget is taken for it. */
  readonly bytes: number;
  /** Who sent the message, and waits to hear what came of it. */
  readonly asker?: Asker;
}

/** Hears once, of the first that can be told of a message, or that nothing will come of it. */
export interface Asker {
  told(first: First): void;
  failed(error: unknown): void;
}

/** What came of a message first: a direct answer, a task that stands, or the discovery that it was here before. */
export type First =
  | { readonly kind: "message"; readonly message: Message }
  | { readonly kind: "task"; readonly log: readonly NewRecord[] | undefined }
  | { readonly kind: "duplicate"; readonly once: OnceRecord };

/**
 * Steps of a turn that are not paced. A short answer so goes down in one commit however busy the server is: of a task with
 * one artifact, one in five took two, and a look into the store for its answer.
 */
const freeSteps = 8;

const unsaid =
  "The agent's turn ended without an event: return turn.reply(…), or yield an event; turn.completed() ends a task without a word";

const firstTurn = { turn: 1, attempt: 1, input: 1 };

/** Executes the turns of one task, one after the other, under one lease (D6, D11). */
export class Run implements TurnHost {
  readonly key: TaskKey;
  readonly hosted: HostedAgent;
  /** For the time limits, on the monotonic clock. */
  startedAt: number;
  lastSignAt: number;

  /** What of the budget is taken for it. */
  bytes: number;

  readonly #rooms: RunRooms;
  readonly #contextId: string;
  /** There from when the task is: a direct answer needs neither. */
  #channel: LiveLog | undefined;
  #writer: LogWriter | undefined;
  #takesIn: Intake | undefined;
  readonly #once: OnceEffect | undefined;
  #asker: Asker | undefined;
  #at: TurnAtHand;
  /** Whether this run makes the task. */
  readonly #isNew: boolean;
  /** When the message came, on the wall: the time of the task's first record. */
  readonly #arrived: number;
  #task: Task | undefined;
  #freshContext: boolean;
  #context: ContextView | undefined;
  #closed = false;
  #leaving = false;
  /** The turn has asked its question: further events are not stored. */
  #silenced = false;
  #storeError: A2AError | undefined;
  #controller: AbortController | undefined;
  #aborted: { readonly kind: TurnAbortKind; readonly words: string; readonly cause: unknown } | undefined;
  #done: Deferred<void> | undefined;

  constructor(rooms: RunRooms, init: RunInit) {
    const { settings } = rooms;
    const { hosted, key, contextId, message, call, start } = init;
    this.#rooms = rooms;
    this.bytes = init.bytes;
    this.hosted = hosted;
    this.key = key;
    this.#contextId = contextId;
    const { turn, attempt, input } = start?.run ?? firstTurn;
    this.#at = {
      turn,
      attempt,
      input,
      message,
      call,
      principal: init.principal ?? call.principal,
      checkpoint: init.checkpoint === undefined ? undefined : (JSON.parse(init.checkpoint) as StoredCheckpoint),
    };
    this.#task = init.task;
    this.#once = init.once;
    this.#freshContext = init.freshContext;
    this.#asker = init.asker;
    this.startedAt = this.lastSignAt = settings.clock.elapsed();
    this.#arrived = settings.clock.now();
    this.#isNew = start === undefined;
    if (start !== undefined) this.#openLog(start);
  }

  /** There from when something is taken in: a direct answer is not. */
  get #intake(): Intake {
    const { settings } = this.#rooms;
    return (this.#takesIn ??= new Intake(settings, this.key, this.#contextId, this.#isNew, this.#arrived, this.#at));
  }

  /** Settles when nothing more will be written; never rejects. */
  get done(): Promise<void> {
    if (this.#done === undefined) {
      this.#done = deferred();
      if (this.#closed) this.#done.resolve();
    }
    return this.#done.promise;
  }

  /** Begins to write the log of the task, from where it stands, or from its first record on. */
  #openLog(start?: WriterStart): LogWriter {
    const { liveLogs, committer, settings } = this.#rooms;
    const channel = liveLogs.acquire(this.key, this.#contextId);
    if (start !== undefined) channel.attach({ seq: start.seq, state: start.state, run: start.run });
    this.#channel = channel;
    this.#writer = new LogWriter({
      committer,
      channel,
      task: this.key,
      contextId: this.#contextId,
      ...(start !== undefined && { start }),
      lease: () => this.#acquire(),
      limits: settings.limits,
      onFull: (record) => this.#full(record),
      onBorn: (log) => this.#tell({ kind: "task", log }),
      onDuplicate: (once) => this.#tell({ kind: "duplicate", once }),
      onOver: (loss, error) => this.#close(loss, error),
    });
    return this.#writer;
  }

  #tell(first: First): void {
    const asker = this.#asker;
    this.#asker = undefined;
    asker?.told(first);
  }

  /** Settles when something new of the run is stored, so that it has shown that the process lives through it. */
  get proven(): Promise<void> {
    return this.#writer?.proven ?? Promise.resolve();
  }

  /** The process has run it for a while: if it ends later, this run is no more to blame than others. */
  acquit(): void {
    this.#writer?.acquit();
  }

  /** Fence under which the run writes; `undefined` while there is no task. */
  get fence(): number | undefined {
    return this.#writer?.fence;
  }

  /** Whether the run waits for somebody outside, so that its silence is no sign of trouble. */
  get waits(): boolean {
    return this.#writer !== undefined && isInterrupted(this.#writer.state);
  }

  /** For the turn: fires when the run is over, in whatever way. */
  get signal(): TurnSignal {
    return (this.#controller ??= this.#newController()).signal;
  }

  /** For the turn. */
  makeId(): string {
    return this.#intake.makeId();
  }

  /** For the turn: everything yielded so far is stored. */
  async flush(): Promise<void> {
    await this.#writer?.flush();
  }

  /** Makes the task although the agent has said nothing yet (§3.2.2 `returnImmediately`). */
  makeTask(): void {
    if (this.#writer === undefined && !this.#closed) this.#create("TASK_STATE_SUBMITTED");
  }

  /** Another took the task away, or this node gives it up. */
  lose(loss: Loss, error?: unknown): void {
    if (this.#writer === undefined) this.#close(loss, error);
    else this.#writer.lose(loss, error);
  }

  /** Ends the task as failed, whatever the agent is doing. */
  expire(limit: "idleTimeout" | "turnTimeout", reason: string): void {
    const sentence = limit === "idleTimeout" ? safeSentences.idle : safeSentences.late;
    this.#failTask(sentence, new Error(reason), limit);
  }

  /** Stops for good: a resumable task is left for another process, any other fails and says why. */
  async stop(): Promise<void> {
    if (this.#closed) return;
    if (this.#writer === undefined) this.#close("shutdown", undefined);
    else if (this.hosted.agent.resumable === true) {
      this.#leaving = true;
      this.#abort("shutdown", "The server stops");
      await this.#writer.handBack();
    } else this.#failTask(safeSentences.stopped, new Error("The server was stopped"), "shutdown");
  }

  /** Runs until the task is over, waits for its user, or is lost. Never rejects. */
  async execute(): Promise<void> {
    try {
      do {
        const key = this.#contextKey();
        const { conversations } = this.#rooms;
        const { message, turn, input: seq } = this.#at;
        const asking = { taskId: this.key.taskId, turn, seq, message };
        this.#context = this.#freshContext ? conversations.begin(key, asking) : await conversations.open(key, asking);
        this.#freshContext = false;
        await this.#drive(this.hosted.agent.execute(this.#turn(this.#context)));
      } while (!this.#stopped && (await this.#goesOn()));
    } catch (error) {
      if (!this.#stopped) this.#failTask(isMistake(error) ? safeSentences.invalid : safeSentences.failed, error);
      else {
        const { taskId } = this.key;
        this.#rooms.settings.logger.debug("An agent threw after its task was over", { taskId, cause: error });
      }
    }
  }

  #turn(context: ContextView): EngineTurn {
    const { logger, clock } = this.#rooms.settings;
    const { taskId } = this.key;
    const init = { at: this.#at, taskId, contextId: this.#contextId, task: this.#task, context, logger, clock };
    return new EngineTurn(init, this);
  }

  /** Whether nothing that the agent says counts any more. */
  get #stopped(): boolean {
    if (this.#leaving || this.#closed) return true;
    return this.#writer !== undefined && (this.#writer.over || isTerminal(this.#writer.state));
  }

  /** Takes everything that the agent says in this turn. */
  async #drive(output: AgentOutput): Promise<void> {
    this.#silenced = false;
    if (!isGenerator(output)) {
      const event = await output;
      if (event !== undefined && !this.#stopped) await this.#accept(event);
      this.#mustHaveSpoken();
      return;
    }
    try {
      for (let steps = 1; ; steps += 1) {
        const step = await output.next();
        if (this.#stopped) break;
        const accepting = step.value === undefined ? undefined : this.#accept(step.value);
        if (accepting !== undefined) await accepting;
        if (step.done === true) return this.#mustHaveSpoken();
        if (this.#silenced) break;
        if (this.#writer?.full === true) await this.#writer.room();
        const rest = steps > freeSteps ? this.#rooms.pace.rest() : undefined;
        if (rest !== undefined) await rest;
        if (this.#stopped) break;
      }
    } catch (error) {
      // Its own error has ended the agent already; one of ours has not, and it may have something to clean up.
      void output.return().catch(() => {});
      throw error;
    }
    // The task or the turn is over, and the agent is not. A failed append surfaces at the yield (D3).
    if (this.#storeError === undefined) await output.return();
    else await output.throw(this.#storeError);
  }

  #mustHaveSpoken(): void {
    if (this.#stopped || this.#intake.said) return;
    this.#failTask(safeSentences.silent, agentMistake(unsaid));
  }

  /** Takes what the agent yielded. All of an array is stored together. */
  #accept(yielded: AgentYield): Promise<unknown> | undefined {
    this.lastSignAt = this.#rooms.settings.clock.elapsed();
    const events: readonly AgentEvent[] = isArray(yielded) ? yielded : [yielded];
    const [first] = events;
    const isDirect = this.#writer === undefined && events.length === 1 && first?.kind === "reply";
    const context = this.#context;
    return isDirect && context !== undefined ? this.#replyDirectly(first, context) : this.#take(events);
  }

  #take(events: readonly AgentEvent[]): Promise<void> | undefined {
    const taken = this.#intake.take(events, this.#writer?.state);
    if (taken instanceof Promise) return taken.then((later) => this.#write(events, later));
    this.#write(events, taken);
    return undefined;
  }

  #write([first]: readonly AgentEvent[], taken: Taken): void {
    if (this.#stopped) return;
    this.#silenced = taken.silenced;
    const writer =
      this.#writer ?? this.#create(first?.kind === "status" ? "TASK_STATE_SUBMITTED" : "TASK_STATE_WORKING");
    if (taken.records[0]?.kind === "artifactUpdate" && isAtRest(writer.state)) this.#work(writer);
    const effects = [...taken.effects, ...this.#contextChange()];
    if (taken.records.length > 0 || effects.length > 0) writer.write(taken.records, effects);
  }

  #replyDirectly(event: Extract<AgentEvent, { kind: "reply" }>, context: ContextView): Promise<unknown> | undefined {
    const { conversations, settings } = this.#rooms;
    const message = agentMessage(event.message, { messageId: settings.ids.next(), contextId: this.#contextId });
    const kept = conversations.keepReply(context, this.#at.message, message, this.#once);
    const answer = (first: First): void => {
      this.#tell(first);
      this.#close(undefined, undefined);
    };
    if (kept === undefined) answer({ kind: "message", message });
    return kept?.then((outcome) => {
      const once = outcome.ok ? undefined : outcome.once;
      answer(once === undefined ? { kind: "message", message } : { kind: "duplicate", once });
    });
  }

  #create(state: "TASK_STATE_SUBMITTED" | "TASK_STATE_WORKING"): LogWriter {
    const writer = this.#openLog();
    const { turn, attempt, input } = this.#at;
    const run: TaskEffect = { effect: "run", run: { turn, attempt, input } };
    writer.write([this.#intake.task(state)], this.#once === undefined ? [run] : [run, this.#once]);
    return writer;
  }

  #work(writer: LogWriter): void {
    writer.write([this.#intake.systemStatus({ state: "TASK_STATE_WORKING" })]);
  }

  #contextChange(): readonly TaskEffect[] {
    const value = this.#context?.takeChange();
    return value === undefined ? [] : [{ effect: "contextState", value }];
  }

  /** The task has no room for what the agent said, or for the message that was to make it. */
  #full(record: NewRecord): void {
    const { taskBytes } = this.#rooms.settings.limits;
    if (record.kind === "task") {
      this.#asker?.failed(taskIsFull(taskBytes));
      this.#asker = undefined;
      this.lose("canceled");
      return;
    }
    const words = `${nameOfRecord(record)} of ${utf8Length(record.json)} bytes does not fit: limits.taskBytes is ${taskBytes}`;
    this.#failTask(safeSentences.full, agentMistake(words));
  }

  /** Ends the turn; `true` when a message waits and its turn was begun instead (D11). */
  async #goesOn(): Promise<boolean> {
    while (this.#writer !== undefined && !this.#stopped) {
      const end = await this.#endTurn(this.#writer);
      if (end === "ended" || this.#stopped) return false;
      if (await this.#nextTurn(this.#writer)) return true;
    }
    return false;
  }

  #endTurn(writer: LogWriter): Promise<TurnEnd> {
    const change = this.#contextChange();
    if (change.length > 0) writer.write([], change);
    if (isInterrupted(writer.state)) return writer.endTurn(undefined);
    return writer.endTurn(this.#intake.systemStatus({ state: "TASK_STATE_COMPLETED" }));
  }

  /** Takes up the oldest message that waits, if one does. */
  async #nextTurn(writer: LogWriter): Promise<boolean> {
    const { store, clock } = this.#rooms.settings;
    await writer.flush();
    const { taskId } = this.key;
    const page = await store.read(this.key, taskId, { after: this.#at.input, limit: 2, kinds: ["message"] });
    if (page === undefined) throw new Error(`Task ${taskId} is gone from the store`);
    const [next] = page.records;
    const later = next && (page.records[1] ?? (await this.#messageAfter(next, page)));
    writer.sawLog(page.head.seq, later !== undefined);
    // A run that was lost meanwhile has given back all that it held.
    if (next === undefined || this.#closed) return false;
    this.#rooms.budget.change(this.key.owner, this.bytes, page.head.bytes);
    this.bytes = page.head.bytes;
    this.#task = (await store.load(this.key, taskId, { artifacts: true }))?.task;
    const call = JSON.parse(next.call ?? "null") as StoredCall;
    this.#at = {
      turn: this.#at.turn + 1,
      attempt: 1,
      input: next.seq,
      message: JSON.parse(next.json) as Message,
      call,
      principal: call.principal,
      checkpoint: undefined,
    };
    this.#intake.begin(this.#at);
    this.startedAt = this.lastSignAt = clock.elapsed();
    if (isInterrupted(writer.state)) this.#work(writer);
    const { turn, input } = this.#at;
    writer.write(
      [],
      [
        { effect: "run", run: { turn, attempt: 1, input } },
        { effect: "checkpoint", value: null },
      ],
    );
    return true;
  }

  /** Of two long messages a page has the first alone. */
  async #messageAfter({ seq: after }: LogRecord, { head }: LogPage): Promise<LogRecord | undefined> {
    if (head.seq === after || head.bytes <= defaultPageBytes) return undefined;
    const { store } = this.#rooms.settings;
    const page = await store.read(this.key, this.key.taskId, { after, limit: 1, kinds: ["message"] });
    return page?.records[0];
  }

  #failTask(sentence: string, cause: unknown, kind: TurnAbortKind = "failed"): void {
    if (this.#stopped) return;
    const fields = { ...this.key, turn: this.#at.turn };
    const { logger } = this.#rooms.settings;
    // Where the operator asked for the end, a stack of ours tells nothing.
    if (kind === "shutdown") logger.warn("A task was ended, since the server stops", fields);
    else logger.error("A task failed", { ...fields, cause });
    const message = { parts: [{ text: sentence }] };
    const writer = this.#writer ?? this.#create("TASK_STATE_WORKING");
    writer.write([this.#intake.systemStatus({ state: "TASK_STATE_FAILED", message })]);
    this.#abort(kind, sentence, cause);
  }

  #close(loss: Loss | undefined, error: unknown): void {
    if (this.#closed) return;
    this.#closed = true;
    const { liveLogs, settings, onOver } = this.#rooms;
    if (loss === "store") {
      this.#storeError = new A2AError("Unavailable", undefined, { cause: error });
      const { agent, taskId } = this.key;
      settings.logger.error("A run was given up because the store failed", { agent, taskId, cause: error });
      this.#channel?.fail(this.#storeError);
    }
    if (loss !== undefined) {
      this.#asker?.failed(this.#storeError ?? new A2AError("Unavailable"));
      this.#asker = undefined;
      this.#abort(...lossWords[loss], error);
    }
    if (this.#channel !== undefined) {
      // A terminal task does not change: its readers may go on with what is at hand.
      if (this.#channel.head === undefined || !isTerminal(this.#channel.head.state)) this.#channel.detach();
      liveLogs.release(this.#channel);
    }
    onOver(this);
    this.#done?.resolve();
  }

  #abort(kind: TurnAbortKind, words: string, cause?: unknown): void {
    // The signal may be asked for later, and then gives the same reason.
    this.#aborted ??= { kind, words, cause };
    this.#controller?.abort(new TurnAborted(kind, words, { cause }));
  }

  #newController(): AbortController {
    const controller = new AbortController();
    if (this.#aborted !== undefined) {
      const { kind, words, cause } = this.#aborted;
      controller.abort(new TurnAborted(kind, words, { cause }));
    } else if (this.#closed) controller.abort(new TurnAborted("over", "The turn is over"));
    return controller;
  }

  #acquire(): TaskEffect {
    const { clock, lease } = this.#rooms.settings;
    const now = clock.now();
    return { effect: "lease", op: "acquire", holder: lease.holder, now, until: now + lease.ttl };
  }

  #contextKey(): ContextKey {
    return { agent: this.key.agent, owner: this.key.owner, contextId: this.#contextId };
  }
}

/** What `turn.signal` says of a run that was lost. */
const lossWords: { readonly [Name in Loss]: readonly [TurnAbortKind, string] } = {
  canceled: ["canceled", "The task was canceled"],
  fenced: ["leaseLost", "Another process has taken the task over"],
  store: ["storeFailed", "The store failed"],
  shutdown: ["shutdown", "The server stops"],
};

/** Whether results show that the agent works although the state does not say so: the task is new, or was authorized by another way (§7.6.1). */
function isAtRest(state: TaskState): boolean {
  return state === "TASK_STATE_SUBMITTED" || state === "TASK_STATE_AUTH_REQUIRED";
}

function isGenerator(output: AgentOutput): output is Extract<AgentOutput, AsyncGenerator<unknown, unknown, void>> {
  return typeof output === "object" && output !== null && Symbol.asyncIterator in output;
}

function isArray(yielded: AgentYield): yielded is readonly AgentEvent[] {
  return Array.isArray(yielded);
}
