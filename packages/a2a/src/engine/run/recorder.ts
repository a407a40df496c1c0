import { utf8Length } from "../../base/index.ts";
import { isTerminal, mayMove, type NewRecord, type TaskState } from "../../model/index.ts";
import type { AgentEvent } from "../../protocol/index.ts";
import type { FeatureEffect, TaskEffect, TaskKey } from "../../store/index.ts";
import { Question, TaskArtifacts } from "./checks.ts";
import { exceeds } from "../bytes.ts";
import type { EngineSettings } from "../options.ts";
import { agentMistake, jsonOf, mistakeOf } from "../mistakes.ts";
import { artifactRecord, keepIn, type Origin, type StatusInit, statusRecord, taskRecord } from "../log/index.ts";
import { Replay, type LostTail } from "./replay.ts";
import type { StoredCheckpoint, TurnInput } from "./turn.ts";

/** What is to be stored of what an agent yielded. */
export interface Recorded {
  readonly records: readonly NewRecord[];
  readonly effects: readonly TaskEffect[];
  /** The agent yielded a status after its own question: nothing more of the turn is stored. */
  readonly silenced: boolean;
}

/** The task that records are made for. */
export interface RecordedTask {
  readonly key: TaskKey;
  readonly contextId: string;
  /** It is about to be made. */
  readonly isNew: boolean;
  /** When the message of its first turn here came; milliseconds since the Unix epoch. */
  readonly arrived: number;
}

const noEffects: readonly FeatureEffect[] = [];

/**
 * Makes log records of what an agent yields in the turns of one task. They are checked against the protocol and the task, have
 * ids that a resumed run makes again, and leave out what such a run repeats.
 */
export class Recorder {
  readonly #settings: EngineSettings;
  readonly #key: TaskKey;
  readonly #contextId: string;
  readonly #isNew: boolean;
  readonly #arrived: number;
  #artifacts: TaskArtifacts | undefined;
  #turn: TurnInput;
  #replay: Replay | undefined;
  /** What a lost run had stored and this one did not repeat. */
  #lost: LostTail | undefined;
  #events = 0;
  #time = 0;
  #hasSpoken = false;
  readonly #question: Question;
  /** What extensions keep with the event that is being recorded, and with records that are not stored yet. */
  #kept: readonly FeatureEffect[] = noEffects;
  #keptWith: Map<NewRecord, readonly FeatureEffect[]> | undefined;

  constructor(settings: EngineSettings, task: RecordedTask, first: TurnInput) {
    this.#settings = settings;
    this.#key = task.key;
    this.#contextId = task.contextId;
    this.#isNew = task.isNew;
    this.#turn = first;
    this.#arrived = this.#time = task.arrived;
    this.#question = new Question(task.key, settings.logger);
    this.begin(first);
  }

  begin(turn: TurnInput): void {
    const { checkpoint, attempt, input } = turn;
    this.#turn = turn;
    this.#events = checkpoint?.events ?? 0;
    this.#hasSpoken = this.#events > 0;
    this.#question.begin(checkpoint?.asked === true);
    const { store } = this.#settings;
    const skip = this.#events;
    this.#replay =
      attempt === 1 ? undefined : new Replay({ store, task: this.#key, turn: turn.turn, after: input, skip });
    this.#lost = undefined;
  }

  /** Whether the agent has said anything in this turn, in whatever attempt. */
  get hasSpoken(): boolean {
    return this.#hasSpoken;
  }

  /** The first record of the task. Its time is that of its message: what the agent says, the first word too, comes after. */
  task(state: TaskState): NewRecord {
    return taskRecord(this.#origin(), state, this.#turn.message, this.#turn.call, this.#arrived);
  }

  /** A status of the engine's own. */
  systemStatus(init: StatusInit): NewRecord {
    const messageId = `${this.#key.taskId}-${this.#turn.turn}-system`;
    return statusRecord(this.#origin(), init, "system", messageId, this.#now());
  }

  /**
   * What is to be stored of what the agent yielded together. `state`: where the task stands. Throws `InvalidAgentResponse`.
   * A promise only where the log has to be read: the promises of each chunk were a tenth of the CPU of a thousand streams.
   */
  take(events: readonly AgentEvent[], state: TaskState): Recorded | Promise<Recorded> {
    const needsLog = events.some((event) => event?.kind === "artifact" && this.#ledger().needsLog(event));
    if (needsLog) {
      return this.#ledger()
        .readLog()
        .then(() => this.#compare(events, state));
    }
    if (this.#replay !== undefined || this.#lost !== undefined) return this.#compare(events, state);
    return this.#plain(events, state);
  }

  /** The same for what makes the task: nothing is stored that it could be compared with. */
  takeFirst(events: readonly AgentEvent[]): Recorded {
    return this.#plain(events, undefined);
  }

  #plain(events: readonly AgentEvent[], state: TaskState | undefined): Recorded {
    const { records, checkpoints, silenced } = this.#read(events, state);
    const saved = checkpoints.map((stored) => this.#save(stored));
    return { records, effects: this.#withKept(saved, records, records), silenced };
  }

  /** The same, compared with what a lost run has stored. */
  async #compare(events: readonly AgentEvent[], state: TaskState): Promise<Recorded> {
    const { records: said, checkpoints, silenced } = this.#read(events, state);
    const replay = this.#replay;
    const added = replay === undefined ? said : await replay.newOf(said);
    const lost = replay?.over === true ? this.#endReplay(replay) : 0;
    // A later run that begins after the checkpoint finds what was lost in the log before it.
    const saved = checkpoints.map((stored) => this.#save({ ...stored, events: stored.events + lost }));
    const effects = this.#withKept(saved, said, added);
    const records = this.#lost === undefined ? added : await this.#lost.replaceIn(added);
    return { records, effects, silenced };
  }

  #read(
    events: readonly AgentEvent[],
    state: TaskState | undefined,
  ): {
    readonly records: readonly NewRecord[];
    readonly checkpoints: readonly StoredCheckpoint[];
    readonly silenced: boolean;
  } {
    const records: NewRecord[] = [];
    const checkpoints: StoredCheckpoint[] = [];
    let before = state;
    let silenced = false;
    for (const event of events) {
      if (event?.kind === "checkpoint") {
        const asked = this.#question.stands && ({ asked: true } as const);
        checkpoints.push({ value: event.value, events: this.#events, ids: this.#turn.ids, ...asked });
        continue;
      }
      silenced = this.#question.silences(event, this.#turn.turn);
      if (silenced) break;
      const record = this.#record(event, before);
      before = record.state ?? before;
      records.push(record);
      if (record.state === "TASK_STATE_INPUT_REQUIRED") this.#question.ask();
    }
    if (records.length > 0) this.#hasSpoken = true;
    return { records, checkpoints, silenced };
  }

  /** From here on the agent says what is new. Gives how many events of the lost run it did not repeat. */
  #endReplay({ tail }: Replay): number {
    this.#replay = undefined;
    this.#lost = tail;
    if (tail === undefined) return 0;
    this.#events += tail.events;
    this.#ledger().reopen(tail.artifacts);
    return tail.events;
  }

  #save(stored: StoredCheckpoint): TaskEffect {
    const value = jsonOf(stored, "turn.saveCheckpoint()");
    const { stateBytes } = this.#settings.limits;
    if (exceeds(value, stateBytes)) {
      throw agentMistake(
        `turn.saveCheckpoint(): the value takes ${utf8Length(value)} bytes, and limits.stateBytes is ${stateBytes}`,
      );
    }
    return { effect: "checkpoint", value };
  }

  #record(event: AgentEvent, before: TaskState | undefined): NewRecord {
    this.#events += 1;
    try {
      return this.#checked(event, before);
    } catch (error) {
      throw mistakeOf(event, `event ${this.#events} of turn ${this.#turn.turn}`, error);
    }
  }

  #checked(given: AgentEvent, before: TaskState | undefined): NewRecord {
    if (before !== undefined && isTerminal(before)) {
      throw agentMistake(`the event before it ended the task (${before}), and nothing can follow: yield it earlier`);
    }
    const record = this.#translate(this.#extended(given));
    if (this.#kept.length > 0) (this.#keptWith ??= new Map()).set(record, this.#kept);
    const { eventBytes } = this.#settings.limits;
    if (exceeds(record.json, eventBytes)) {
      throw agentMistake(
        `it takes ${utf8Length(record.json)} bytes, and limits.eventBytes is ${eventBytes}: give a large result in pieces, with turn.append()`,
      );
    }
    // A run that repeats what is stored goes through its states a second time.
    const moves = record.state === undefined || before === undefined || mayMove(before, record.state);
    if (!moves && this.#replay === undefined) {
      throw agentMistake(`a task cannot go from ${before} to ${record.state}`);
    }
    return record;
  }

  /** What extensions make of an event. */
  #extended(event: AgentEvent): AgentEvent {
    const { call, message } = this.#turn;
    const { extensions } = call;
    this.#kept = noEffects;
    if (extensions.length === 0) return event;
    const turn = { contextId: this.#contextId, taskId: this.#key.taskId, message, extensions };
    const kept: FeatureEffect[] = [];
    const extended = this.#settings.extensions.append(event, turn, { keep: keepIn(kept) });
    this.#kept = kept;
    return extended;
  }

  /** Effects, and what extensions keep with the records that are to be stored of those that the agent said. */
  #withKept(
    effects: readonly TaskEffect[],
    said: readonly NewRecord[],
    stored: readonly NewRecord[],
  ): readonly TaskEffect[] {
    const kept = this.#keptWith;
    if (kept === undefined) return effects;
    const all = [...effects, ...stored.flatMap((record) => kept.get(record) ?? noEffects)];
    for (const record of said) kept.delete(record);
    return all;
  }

  #translate(event: AgentEvent): NewRecord {
    switch (event?.kind) {
      case "artifact": {
        const record = artifactRecord(this.#origin(), event, this.#now());
        this.#ledger().note(event, this.#replay !== undefined);
        return record;
      }
      case "status":
        return this.#status(event);
      case "reply":
        // The task was made before the answer was known: the answer completes it.
        return this.#status({ state: "TASK_STATE_COMPLETED", message: event.message });
      default:
        throw agentMistake(
          typeof event === "object" && event !== null && Symbol.asyncIterator in event
            ? "it is a stream of events: write yield* turn.stream(…), with the star"
            : "it is no event: yield what the builders of the turn give, turn.working() or turn.artifact()",
        );
    }
  }

  #ledger(): TaskArtifacts {
    return (this.#artifacts ??= new TaskArtifacts(this.#settings.store, this.#key, this.#isNew));
  }

  #status(init: StatusInit): NewRecord {
    const { turn, attempt } = this.#turn;
    const messageId = `${this.#key.taskId}-${turn}-${attempt}-${this.#events}`;
    return statusRecord(this.#origin(), init, "agent", messageId, this.#now());
  }

  #origin(): Origin {
    const { turn, attempt, call } = this.#turn;
    const { extensions, trace } = call;
    return { taskId: this.#key.taskId, contextId: this.#contextId, turn, attempt, extensions, trace };
  }

  /** Time that never runs backwards within a task. */
  #now(): number {
    this.#time = Math.max(this.#time, this.#settings.clock.now());
    return this.#time;
  }
}
