import { utf8Length, type Logger } from "@parley/a2a/internal/base/index";
import { isInterrupted, isTerminal, mayMove, type NewRecord, type TaskState } from "@parley/a2a/internal/model/index";
import type { AgentEvent, DelegatedEvent, WaitEvent } from "@parley/a2a/internal/protocol/index";
import { delegationFeature, type FeatureEffect, type TaskEffect, type TaskKey } from "../../store/index.ts";
import { exceeds } from "../shared/bytes.ts";
import {
  artifactRecord,
  statusRecord,
  taskRecord,
  type Additions,
  type Origin,
  type StatusInit,
} from "../log/index.ts";
import { agentMistake, checkFreeJson, mistakeOf } from "../shared/mistakes.ts";
import type { RunSettings } from "../shared/settings.ts";
import {
  checkpointOf,
  Checkpoints,
  ExtendedEvents,
  Question,
  TaskArtifacts,
  recordOf,
  type EventPlace,
} from "./events.ts";
import { piecesOf, Replay, type LostEvents } from "./replay.ts";
import { activeIn, attemptOf, type StoredCheckpoint, type TurnInput, type Waiting, seenBy } from "./turn-input.ts";

export interface Recorded {
  readonly records: readonly NewRecord[];
  /** The extension rows of each record; absent if the turn has no extensions. */
  readonly kept: readonly (readonly FeatureEffect[])[] | undefined;
  readonly effects: readonly TaskEffect[];
  /** Whether the agent yielded a status after its own question. This ends the turn, and that status and everything after it are not stored. */
  readonly endsTurn: boolean;
  /** Set if the turn has ended with the question of a delegation, and resumes with the answer. */
  readonly suspends?: true;
  /** The waits of the turn, which resumes when one of them is over. Absent: the turn does not wait. */
  readonly waits?: Waiting;
}

/** The task whose records are made. */
export interface RecordedTask {
  readonly key: TaskKey;
  readonly contextId: string;
  readonly isNew: boolean;
  /** When the message of the run's first turn arrived; milliseconds since the Unix epoch. */
  readonly arrived: number;
  readonly logger: Logger;
}

/** Events as records, before they are compared with a lost run's records. */
interface Read {
  readonly records: readonly NewRecord[];
  readonly kept: readonly (readonly FeatureEffect[])[] | undefined;
  readonly checkpoints: readonly StoredCheckpoint[];
  readonly endsTurn: boolean;
}

const none: readonly TaskEffect[] = [];
const nothing = { records: [], kept: undefined, effects: none };

/**
 * Converts the events that an agent yields in the turns of one task to log records. Checks each event against the protocol and the
 * task. If a resumed run yields an event again, its record gets the same ids, and is omitted if the lost run has stored it.
 */
export class Recorder {
  readonly #settings: RunSettings;
  readonly #key: TaskKey;
  readonly #contextId: string;
  readonly #isNew: boolean;
  readonly #arrived: number;
  readonly #question: Question;
  #artifacts: TaskArtifacts | undefined;
  #turn: TurnInput;
  #extended: ExtendedEvents | undefined;
  /** Set while a resumed run may repeat events of the lost run. */
  #replay: Replay | undefined;
  /** Events that the lost run had stored and this run has not repeated. */
  #lost: LostEvents | undefined;
  #events = 0;
  /** Number of delegation events in this attempt. */
  #delegated = 0;
  readonly #checkpoints: Checkpoints;
  readonly #logger: Logger;
  /** The time of the last record. */
  #time = 0;

  constructor(settings: RunSettings, task: RecordedTask, first: TurnInput) {
    this.#settings = settings;
    this.#key = task.key;
    this.#contextId = task.contextId;
    this.#isNew = task.isNew;
    this.#turn = first;
    this.#arrived = this.#time = task.arrived;
    this.#logger = task.logger;
    this.#question = new Question(task.logger);
    this.#checkpoints = new Checkpoints(settings);
    this.begin(first);
  }

  begin(turn: TurnInput): void {
    const { checkpoint } = turn;
    this.#turn = turn;
    this.#checkpoints.begin(checkpoint);
    this.#delegated = 0;
    this.#events = checkpoint?.events ?? 0;
    this.#question.begin(checkpoint?.asked === true);
    this.#replay = attemptOf(turn) === 1 ? undefined : this.#replayOf(turn);
    this.#lost = undefined;
  }

  #replayOf(turn: TurnInput): Replay {
    const { store, extensions } = this.#settings;
    const first = seenBy(turn);
    const lost = {
      turn: first.turn,
      last: turn.turn,
      after: first.input,
      skip: this.#events,
      lost: turn.checkpoint?.lost ?? [],
    };
    return new Replay({ store, task: this.#key, ...lost, repeatable: extensions.repeatable(activeIn(turn)) });
  }

  /** Optional additions of extensions, dropped if the task has no room. */
  get additions(): Additions | undefined {
    return this.#extended?.additions;
  }

  /** Whether the agent has yielded any event in this turn, in any of its attempts. */
  get hasEvents(): boolean {
    return this.#events > 0 || this.#delegated > 0;
  }

  /** The first record of the task. It has the arrival time of the message, so it is never later than the first event. */
  task(state: TaskState): NewRecord {
    return taskRecord(this.#origin(), state, this.#turn.message, this.#turn.call, this.#arrived);
  }

  systemStatus(init: StatusInit): NewRecord {
    const messageId = `${this.#key.taskId}-${this.#turn.turn}-system`;
    return statusRecord(this.#origin(), init, "system", messageId, this.#now());
  }

  /** A status that the engine sets at the end of a turn, with the extensions' additions. */
  endStatus(init: StatusInit): NewRecord {
    const metadata = this.#turn.active?.finish(init.state);
    if (metadata === undefined) return this.systemStatus(init);
    const record = this.systemStatus({ ...init, metadata });
    return this.#extensions().withAddition(record, activeIn(this.#turn), () => this.systemStatus(init));
  }

  /**
   * Records events that the agent yielded together. `state`: the task's state before them. Throws or rejects with
   * `InvalidAgentResponse`. Returns a promise only if it must read the log, for row `fan-in` of the benchmarks.
   */
  take(events: readonly AgentEvent[], state: TaskState): Recorded | Promise<Recorded> {
    if (events.length === 1 && events[0]?.kind === "delegated") return this.#takeDelegated(events[0], state);
    if (events.length === 1 && events[0]?.kind === "wait") return this.#takeWait(events[0]);
    const needsLog = events.some((event) => event?.kind === "artifact" && this.#ledger().needsLog(event));
    if (needsLog) {
      return this.#ledger()
        .readLog()
        .then(() => this.#compare(events, state));
    }
    if (this.#replay !== undefined || this.#lost !== undefined) return this.#compare(events, state);
    return this.#plain(events, state);
  }

  /** Records the events that make the task. */
  takeFirst(events: readonly AgentEvent[]): Recorded {
    return this.#plain(events, undefined);
  }

  #plain(events: readonly AgentEvent[], state: TaskState | undefined): Recorded {
    const { records, kept, checkpoints, endsTurn } = this.#read(events, state);
    const saved = checkpoints.length === 0 ? none : checkpoints.map((stored) => this.#save(stored));
    return { records, kept, effects: saved, endsTurn };
  }

  /** Omits events that the lost run has stored already. */
  async #compare(events: readonly AgentEvent[], state: TaskState): Promise<Recorded> {
    const { records: all, kept, checkpoints, endsTurn } = this.#read(events, state);
    const replay = this.#replay;
    const { repeated, added } =
      replay === undefined
        ? { repeated: 0, added: (await this.#lost?.replaceInAll(all)) ?? all }
        : await replay.compare(all, this.additions);
    const lost = replay === undefined ? 0 : this.#compared(replay);
    const end = added.findIndex(({ state: next }) => next !== undefined && (isTerminal(next) || isInterrupted(next)));
    const restored = end < 0 || this.#lost === undefined ? [] : await this.restore();
    // A later attempt that starts at this checkpoint must also skip the lost and restored events that the log has before it.
    const before = (asked = false): number => lost + (asked ? restored.length : 0);
    const saved = checkpoints.map((stored) => this.#save({ ...stored, events: stored.events + before(stored.asked) }));
    const at = Math.max(0, end);
    const rows = kept?.slice(repeated).toSpliced(at, 0, ...restored.map(() => []));
    return { records: added.toSpliced(at, 0, ...restored), kept: rows, effects: saved, endsTurn };
  }

  /** Whether artifacts may hold chunks of a lost run that this run has not repeated. */
  get mayRestore(): boolean {
    return this.#replay !== undefined || this.#lost !== undefined;
  }

  /** Records that replace the artifacts with chunks of a lost run by the content that this run wrote, which extensions have already changed. */
  async restore(): Promise<readonly NewRecord[]> {
    const replay = this.#replay;
    await replay?.end();
    if (replay !== undefined) this.#compared(replay);
    const artifacts = (await this.#lost?.restored()) ?? [];
    const events = artifacts.flatMap((event) => piecesOf(event, this.#settings.limits.eventBytes));
    this.#events += events.length;
    return events.map((event) => {
      this.#ledger().note(event, true);
      return artifactRecord(this.#origin(), event, "agent", this.#now());
    });
  }

  /**
   * Records an event of another agent. Such an event is not compared with the events of a lost run, because the delegation's row
   * stores how far the delegation got.
   */
  #takeDelegated({ key, row, event }: DelegatedEvent, state: TaskState): Recorded {
    this.#delegated += 1;
    const value = JSON.stringify(row);
    const stored: TaskEffect = { effect: "feature", op: "set", feature: delegationFeature, key, value };
    if (event === undefined) return { records: [], kept: undefined, effects: [stored], endsTurn: false };
    if (this.#question.refuses(event, this.#turn.turn)) return { ...nothing, endsTurn: true };
    const kept: FeatureEffect[][] | undefined = activeIn(this.#turn).length === 0 ? undefined : [];
    const [record, extended] = this.#made(event, kept, "delegate");
    this.#check(record, state);
    if (extended.kind === "artifact") this.#ledger().note(extended, true);
    if (record.state !== "TASK_STATE_INPUT_REQUIRED") {
      return { records: [record], kept, effects: [stored], endsTurn: false };
    }
    const checkpoint = this.#checkpoints.suspend(this.#turn);
    return { records: [record], kept, effects: [stored, checkpoint], endsTurn: true, suspends: true };
  }

  /** Makes the task wait. Its run resumes as another attempt of the same turn. */
  #takeWait(event: WaitEvent): Recorded {
    if (this.#question.refuses(event, this.#turn.turn)) return { ...nothing, endsTurn: true };
    const [effects, waits] = this.#checkpoints.wait(this.#turn, event);
    return { records: [], kept: undefined, effects, endsTurn: true, waits };
  }

  #read(events: readonly AgentEvent[], state: TaskState | undefined): Read {
    const records: NewRecord[] = [];
    const kept: FeatureEffect[][] | undefined = activeIn(this.#turn).length === 0 ? undefined : [];
    const checkpoints: StoredCheckpoint[] = [];
    let before = state;
    for (const event of events) {
      if (event?.kind === "checkpoint") {
        checkpoints.push(checkpointOf(event.value, this.#events, this.#turn, this.#question.isOpen));
        continue;
      }
      if (this.#question.refuses(event, this.#turn.turn)) return { records, kept, checkpoints, endsTurn: true };
      const record = this.#record(event, before, kept);
      before = record.state ?? before;
      records.push(record);
      if (record.state === "TASK_STATE_INPUT_REQUIRED") this.#question.ask();
    }
    return { records, kept, checkpoints, endsTurn: false };
  }

  /** `seq` of the last stored event that this attempt has repeated. 0: no event was repeated. */
  get replayedTo(): number {
    return this.#replay?.at ?? 0;
  }

  /** Handles the result of comparing events with the lost run. Returns how many ignored records were skipped. */
  #compared(replay: Replay): number {
    const passed = replay.takePassed();
    this.#events += passed;
    if (!replay.over) return passed;
    this.#replay = undefined;
    this.#lost = replay.lost;
    this.#ledger().reopen(replay.lost.artifacts);
    if (replay.tail !== undefined) this.#checkpoints.lose(replay.tail);
    return passed;
  }

  #save(saved: StoredCheckpoint): TaskEffect {
    return this.#checkpoints.save(saved, this.#replay === undefined ? Infinity : this.#replay.at);
  }

  /** `kept`: receives the extension rows of the record. */
  #record(event: AgentEvent, before: TaskState | undefined, kept: FeatureEffect[][] | undefined): NewRecord {
    this.#events += 1;
    try {
      checkFreeJson(event);
      if (before !== undefined && isTerminal(before)) {
        throw agentMistake(`the event before it ended the task (${before}), and nothing can follow: yield it earlier`);
      }
      // The most frequent case: a chunk without extensions (row `chunk` of the budgets).
      if (kept === undefined && event?.kind === "artifact") {
        const chunk = artifactRecord(this.#origin(), event, "agent", this.#now());
        this.#check(chunk, before);
        this.#ledger().note(event, this.#replay !== undefined);
        return chunk;
      }
      const [record, extended] = this.#made(event, kept, "agent");
      this.#check(record, before);
      if (extended.kind === "artifact") this.#ledger().note(extended, this.#replay !== undefined);
      return record;
    } catch (error) {
      throw mistakeOf(event, `event ${this.#events} of turn ${this.#turn.turn}`, error);
    }
  }

  #check({ json, state }: NewRecord, before: TaskState | undefined): void {
    const { eventBytes } = this.#settings.limits;
    if (exceeds(json, eventBytes)) {
      throw agentMistake(
        `it takes ${utf8Length(json)} bytes, and limits.eventBytes is ${eventBytes}: give a large result in pieces, with turn.append()`,
      );
    }
    // A resumed run repeats its states.
    if (state === undefined || before === undefined || this.#replay !== undefined) return;
    if (!mayMove(before, state)) throw agentMistake(`a task cannot go from ${before} to ${state}`);
  }

  /** The record of an event, and the event after the extensions' changes. */
  #made(
    event: AgentEvent,
    kept: FeatureEffect[][] | undefined,
    actor: EventPlace["actor"],
  ): readonly [NewRecord, AgentEvent] {
    if (kept === undefined) return [recordOf(event, this.#place(actor)), event];
    return this.#extensions().made(event, this.#turn, kept, () => this.#place(actor));
  }

  #place(actor: EventPlace["actor"]): EventPlace {
    const number = actor === "delegate" ? `d${this.#delegated}` : String(this.#events);
    return { key: this.#key, origin: this.#origin(), actor, number, time: this.#now() };
  }

  #extensions(): ExtendedEvents {
    return (this.#extended ??= new ExtendedEvents(this.#settings, this.#key, this.#contextId, this.#logger));
  }

  #ledger(): TaskArtifacts {
    return (this.#artifacts ??= new TaskArtifacts(this.#settings.store, this.#key, this.#isNew));
  }

  #origin(): Origin {
    const { turn, attempt, call } = this.#turn;
    const { trace } = call;
    const extensions = activeIn(this.#turn);
    return { taskId: this.#key.taskId, contextId: this.#contextId, turn, attempt, extensions, trace };
  }

  /** Time that never runs backwards within a task. */
  #now(): number {
    this.#time = Math.max(this.#time, this.#settings.clock.now());
    return this.#time;
  }
}
