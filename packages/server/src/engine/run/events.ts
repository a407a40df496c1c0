import { type Logger, utf8Length } from "@parley/a2a/internal/base/index";
import { ArtifactLedger, type NewRecord, type TaskState, type JsonValue } from "@parley/a2a/internal/model/index";
import type { AgentEvent, ArtifactEvent, WaitEvent } from "@parley/a2a/internal/protocol/index";
import type { FeatureEffect, Store, TaskKey, StoredRun, TaskEffect } from "../../store/index.ts";
import { Additions, artifactRecord, keepIn, statusRecord, type Origin, type StatusInit } from "../log/index.ts";
import { exceeds } from "../shared/bytes.ts";
import { agentMistake, nameOf, jsonOf } from "../shared/mistakes.ts";
import type { RunSettings } from "../shared/settings.ts";
import {
  activeIn,
  type TurnInput,
  attemptOf,
  checkpointJson,
  type StoredCheckpoint,
  type SuspendedTurn,
  type Waiting,
  seenBy,
} from "./turn-input.ts";
import { updateJson } from "../../store/json.ts";
import type { LostRange } from "./replay.ts";
import { waitRow } from "./task-rows.ts";

/**
 * The artifacts of a task. An append to an unknown or closed artifact is a mistake of the agent. Artifacts of earlier turns and
 * lost runs are read from the log when an append first needs them.
 */
export class TaskArtifacts {
  readonly #store: Pick<Store, "read">;
  readonly #task: TaskKey;
  readonly #own = new ArtifactLedger();
  /** Artifacts in the log before this run. `undefined`: not read yet. */
  #earlier: ArtifactLedger | undefined;

  /** `isNew`: the task is not stored yet, so its log has no artifacts. */
  constructor(store: Pick<Store, "read">, task: TaskKey, isNew: boolean) {
    this.#store = store;
    this.#task = task;
    if (isNew) this.#earlier = new ArtifactLedger();
  }

  /** Whether `readLog` must be called before an event can be noted. */
  needsLog({ artifact, append }: ArtifactEvent): boolean {
    return this.#earlier === undefined && append === true && this.#own.isClosed(artifact.artifactId) === undefined;
  }

  async readLog(): Promise<void> {
    this.#earlier = await this.#read();
  }

  /** Notes an event. Throws for an append to an artifact that is not open, unless the run repeats events of a lost run. */
  note(event: ArtifactEvent, repeating: boolean): void {
    const { artifactId } = event.artifact;
    if (event.append === true && !repeating) {
      const closed = this.#own.isClosed(artifactId) ?? this.#earlier?.isClosed(artifactId);
      if (closed !== false) throw agentMistake(notOpen(artifactId, closed === true));
    }
    this.#own.note({ artifact: event.artifact, lastChunk: event.lastChunk === true });
  }

  reopen(artifacts: Iterable<string>): void {
    for (const artifactId of artifacts) {
      if (this.#own.isClosed(artifactId) === undefined) this.#own.note({ artifact: { artifactId } });
    }
  }

  async #read(): Promise<ArtifactLedger> {
    const ledger = new ArtifactLedger();
    const { taskId } = this.#task;
    for (let after = 0; ;) {
      const page = await this.#store.read(this.#task, taskId, { after, limit: 256, kinds: ["artifactUpdate"] });
      const last = page?.records.at(-1);
      if (page === undefined || last === undefined) return ledger;
      for (const record of page.records) ledger.note(updateJson.read(record.json));
      after = last.seq;
    }
  }
}

function notOpen(artifactId: string, closed: boolean): string {
  const id = JSON.stringify(artifactId);
  const open = `turn.artifact({ artifactId: ${id}, parts, open: true })`;
  if (!closed) return `this task has no artifact ${id}: begin it with ${open}`;
  return `artifact ${id} is closed: open it with ${open}, and close it with { last: true } on the last append alone`;
}

/** States in which a turn may end the task after asking a question, because the status carries a reason. */
const withdraws: ReadonlySet<TaskState> = new Set(["TASK_STATE_FAILED", "TASK_STATE_REJECTED", "TASK_STATE_CANCELED"]);

const statusAdvice = "The question ends its turn: return after asking, and continue in the turn of the answer.";
const waitAdvice =
  "The question ends its turn, and the answer begins the next one: wait before you ask, or in the turn of the answer.";
const artifactAdvice = "A stream of the message has ended with the question: yield results before it.";

/**
 * The question that a turn has asked its user, which stays open until the answer arrives. A later status of the same turn would
 * withdraw the question before the user could answer. Such a status is an error, unless it ends the task with a reason.
 */
export class Question {
  readonly #logger: Logger;
  #isOpen = false;
  #warned = false;

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** Begins a turn. `isOpen`: whether the lost run of this turn had asked a question. */
  begin(isOpen: boolean): void {
    this.#isOpen = isOpen;
    this.#warned = false;
  }

  ask(): void {
    this.#isOpen = true;
  }

  /**
   * Whether an event must not be stored because it follows the question. A result is stored, but streams of the message
   * have ended with the question (A2A 1.0 §11.7), so their clients do not see it immediately. Both cases are logged for the operator.
   */
  refuses(event: AgentEvent, turn: number): boolean {
    if (!this.#isOpen) return false;
    const kind = event?.kind;
    // A wait: the answer would be handled only after the end of this wait, which may never come.
    const refused = kind === "reply" || kind === "wait" || (kind === "status" && !withdraws.has(event.state));
    if (refused || (event?.kind === "artifact" && !this.#warned)) this.#report(event, turn, refused);
    return refused;
  }

  #report(event: AgentEvent, turn: number, refused: boolean): void {
    const fields = { turn };
    const late = `${nameOf(event)} after turn.inputRequired()`;
    this.#warned = true;
    const advice = event.kind === "wait" ? waitAdvice : statusAdvice;
    if (refused) this.#logger.error(`${late} is not stored. ${advice}`, fields);
    else this.#logger.warn(`${late} reaches the client late. ${artifactAdvice}`, fields);
  }
}

/** The origin and position of an agent's event. */
export interface EventPlace {
  readonly key: TaskKey;
  readonly origin: Origin;
  /** The author of the event. Events of a delegation come from another agent. */
  readonly actor: "agent" | "delegate";
  /** The number of the event in its turn, for the id of the event's message. */
  readonly number: string;
  readonly time: number;
}

/**
 * The record of an event of this agent or of a delegation.
 *
 * @throws A2AError `InvalidAgentResponse` for anything but an event.
 */
export function recordOf(event: AgentEvent, place: EventPlace): NewRecord {
  if (place.actor === "delegate" && event?.kind !== "artifact" && event?.kind !== "status") {
    throw agentMistake("an extension turned an event of another agent into another kind");
  }
  switch (event?.kind) {
    case "artifact":
      return artifactRecord(place.origin, event, place.actor, place.time);
    case "status":
      return status(event, place);
    case "reply":
      // The task was created before the answer was known, so the answer completes it.
      return status({ state: "TASK_STATE_COMPLETED", message: event.message }, place);
    default:
      throw agentMistake(
        typeof event === "object" && event !== null && Symbol.asyncIterator in event
          ? "it is a stream of events: write yield* turn.stream(…), with the star"
          : "it is not an event: yield the result of a builder of the turn, such as turn.working() or turn.artifact()",
      );
  }
}

function status(init: StatusInit, { key, origin, actor, number, time }: EventPlace): NewRecord {
  const messageId = `${key.taskId}-${origin.turn}-${origin.attempt}-${number}`;
  return statusRecord(origin, init, actor, messageId, time);
}

/** Applies the extensions of a turn to the events of one task. Additions of kind `data` are dropped if the task has no room. */
export class ExtendedEvents {
  readonly additions: Additions;
  readonly #settings: RunSettings;
  readonly #key: TaskKey;
  readonly #contextId: string;

  readonly #logger: Logger;

  constructor(settings: RunSettings, key: TaskKey, contextId: string, logger: Logger) {
    this.additions = new Additions(logger);
    this.#logger = logger;
    this.#settings = settings;
    this.#key = key;
    this.#contextId = contextId;
  }

  /** The record of an event, and the event after the extensions' changes. `kept`: receives the rows that extensions store with the record. */
  made(
    event: AgentEvent,
    input: TurnInput,
    kept: FeatureEffect[][],
    placeOf: () => EventPlace,
  ): readonly [NewRecord, AgentEvent] {
    const rows: FeatureEffect[] = [];
    kept.push(rows);
    const extended = this.#append(event, input, rows, false);
    const place = placeOf();
    const record = recordOf(extended, place);
    const by = this.#settings.extensions.adding(activeIn(input));
    if (by.length === 0) return [record, extended];
    const bare = (effects: FeatureEffect[]): AgentEvent => this.#append(event, input, effects, true);
    if (!this.#isTooLarge(record)) {
      this.additions.note(record, { by, bare: () => recordOf(bare([]), place), rows });
      return [record, extended];
    }
    const left: FeatureEffect[] = [];
    const without = bare(left);
    kept.splice(-1, 1, left);
    this.additions.leftOut(by, "limits.eventBytes");
    return [recordOf(without, place), without];
  }

  /** A status of the server with the extensions' additions, or without these if they are too large. */
  withAddition(record: NewRecord, by: readonly string[], bare: () => NewRecord): NewRecord {
    if (this.#isTooLarge(record)) {
      this.additions.leftOut(by, "limits.eventBytes");
      return bare();
    }
    this.additions.note(record, { by, bare, rows: [] });
    return record;
  }

  #isTooLarge({ json }: NewRecord): boolean {
    return exceeds(json, this.#settings.limits.eventBytes);
  }

  /** `bare`: without extensions of the kind `data`. */
  #append(event: AgentEvent, input: TurnInput, effects: FeatureEffect[], bare: boolean): AgentEvent {
    const { message } = seenBy(input);
    const { clock, extensions } = this.#settings;
    const { taskId } = this.#key;
    const turn = { contextId: this.#contextId, taskId, message, extensions: activeIn(input), clock };
    return extensions.append(event, turn, input.active, { keep: keepIn(effects) }, bare, this.#logger);
  }
}

/** Maximum stored ranges of lost events. Beyond this number of diverging attempts, events of the oldest range count again. */
const maxLostRanges = 256;

/** The agent's checkpoint. `events`: how many events the agent has yielded. `asked`: whether it has asked a question. */
export function checkpointOf(
  value: JsonValue,
  events: number,
  { ids, counts }: TurnInput,
  asked: boolean,
): StoredCheckpoint {
  return { value, events, ids, ...(counts && { counts: [...counts] }), ...(asked && { asked }) };
}

export class Checkpoints {
  readonly #stateBytes: number;
  #last: StoredCheckpoint | undefined;
  /** Events after the checkpoint that do not count, because a later attempt did not repeat them. */
  #lost: readonly LostRange[] = [];

  constructor({ limits }: RunSettings) {
    this.#stateBytes = limits.stateBytes;
  }

  begin(checkpoint: StoredCheckpoint | undefined): void {
    this.#last = checkpoint;
    this.#lost = checkpoint?.lost ?? [];
  }

  /** Notes that events of an earlier attempt no longer count. */
  lose(range: LostRange): void {
    this.#lost = [...this.#lost, range].slice(-maxLostRanges);
  }

  /** Saves a checkpoint. `after`: the `seq` up to which the log was compared with the turn's events. */
  save(saved: StoredCheckpoint, after: number): TaskEffect {
    const suspended = this.#last?.suspended;
    // Events before the checkpoint are not compared again.
    this.#lost = this.#lost.filter(([from]) => from > after);
    this.#last = suspended === undefined ? saved : { ...saved, suspended };
    const value = jsonOf(this.#now(), "turn.saveCheckpoint()", saved.value);
    if (exceeds(value, this.#stateBytes)) {
      throw agentMistake(
        `turn.saveCheckpoint(): the value takes ${utf8Length(value)} bytes, and limits.stateBytes is ${this.#stateBytes}`,
      );
    }
    return { effect: "checkpoint", value };
  }

  /** The turn ends with the question of a delegation, and resumes with the answer. */
  suspend(input: TurnInput): TaskEffect {
    const { turn, input: at } = seenBy(input);
    const suspended: SuspendedTurn = { turn, input: at, attempt: attemptOf(input), askedIn: input.turn };
    return { effect: "checkpoint", value: checkpointJson.write({ ...this.#now(), suspended }) };
  }

  /** The turn waits. Its run resumes as another attempt of the same turn. */
  wait({ turn, attempt, input, resumes }: TurnInput, { waits }: WaitEvent): [TaskEffect[], Waiting] {
    const seen = resumes?.turn ?? turn;
    const rows = waits.map(({ key, wait }) => waitRow(seen, key, wait, wait.until));
    const until = Math.min(...waits.map(({ wait }) => wait.until ?? Infinity));
    const events = waits.some(({ wait }) => wait.event !== undefined);
    const waiting: StoredRun = { turn, attempt, input };
    const checkpoint: TaskEffect = { effect: "checkpoint", value: checkpointJson.write({ ...this.#now(), waiting }) };
    return [[...rows, checkpoint], { until, events }];
  }

  #now(): StoredCheckpoint {
    const last = this.#last ?? { events: 0, ids: 0 };
    const { lost: _, ...rest } = last;
    return this.#lost.length === 0 ? rest : { ...rest, lost: this.#lost };
  }
}
