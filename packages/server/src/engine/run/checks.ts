import type { Logger } from "@parley/a2a/internal/base/index";
import {
  ArtifactLedger,
  type NewRecord,
  type Part,
  type TaskArtifactUpdateEvent,
  type TaskState,
} from "@parley/a2a/internal/model/index";
import {
  AuthorizationNotGiven,
  DelegationFailed,
  type AgentEvent,
  type AgentOutput,
  type AgentYield,
  type ArtifactEvent,
  type MessageRefused,
  type TurnAbortKind,
} from "@parley/a2a/internal/protocol/index";
import { stepFeature, type Store, type StoredRun, type TaskEffect, type TaskKey } from "../../store/index.ts";
import type { ContextView } from "../conversations/conversations.ts";
import type { StatusInit } from "../log/index.ts";
import { agentMistake, isMistake, nameOf } from "../shared/mistakes.ts";
import { safeSentences, type PhaseHost } from "./phase.ts";
import { isBegun } from "./step-rows.ts";

/**
 * The artifacts of a task. An append to an unknown or closed artifact is a mistake of the agent. Artifacts of earlier turns and
 * lost runs are read from the log when an append first needs them.
 */
export class TaskArtifacts {
  readonly #store: Pick<Store, "read">;
  readonly #task: TaskKey;
  /** Artifacts of this run. */
  readonly #own = new ArtifactLedger();
  /** Artifacts of the log before it; absent until they are needed. */
  #earlier: ArtifactLedger | undefined;

  /** `isNew`: the task is not stored yet, so its log has no artifacts. */
  constructor(store: Pick<Store, "read">, task: TaskKey, isNew: boolean) {
    this.#store = store;
    this.#task = task;
    if (isNew) this.#earlier = new ArtifactLedger();
  }

  /** Whether `readLog` has to be called before an event can be noted. */
  needsLog({ artifact, append }: ArtifactEvent): boolean {
    return this.#earlier === undefined && append === true && this.#own.isClosed(artifact.artifactId) === undefined;
  }

  async readLog(): Promise<void> {
    this.#earlier = await this.#read();
  }

  /** Notes an event. Throws for an append to an artifact that is not open, unless the run repeats events of a lost one. */
  note(event: ArtifactEvent, repeating: boolean): void {
    const { artifactId } = event.artifact;
    if (event.append === true && !repeating) {
      const closed = this.#own.isClosed(artifactId) ?? this.#earlier?.isClosed(artifactId);
      if (closed !== false) throw agentMistake(notOpen(artifactId, closed === true));
    }
    this.#own.note({ artifact: event.artifact, lastChunk: event.lastChunk === true });
  }

  /** Opens artifacts that only the lost run had closed. */
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
      for (const record of page.records) ledger.note(JSON.parse(record.json) as TaskArtifactUpdateEvent);
      after = last.seq;
    }
  }
}

/** Why an append is wrong, and how to write it. */
function notOpen(artifactId: string, closed: boolean): string {
  const id = JSON.stringify(artifactId);
  const open = `turn.artifact({ artifactId: ${id}, parts, open: true })`;
  if (!closed) return `this task has no artifact ${id}: begin it with ${open}`;
  return `artifact ${id} is closed: open it with ${open}, and close it with { last: true } on the last append alone`;
}

/** States by which a turn may end the task after its question: they say why. */
const withdraws: ReadonlySet<TaskState> = new Set(["TASK_STATE_FAILED", "TASK_STATE_REJECTED", "TASK_STATE_CANCELED"]);

const statusAdvice = "The question ends its turn: return after asking, and go on in the turn of the answer.";
const waitAdvice =
  "The question ends its turn, and the answer begins the next one: wait before you ask, or in the turn of the answer.";
const artifactAdvice = "A stream of the message has ended with the question: yield results before it.";

/**
 * The question that a turn has asked its user. It stays open until the answer comes. A later status of the same turn would take
 * it back before anyone could answer, so such a status is refused, unless it ends the task for a reason.
 */
export class Question {
  readonly #logger: Logger;
  #isOpen = false;
  #warned = false;

  /** `logger`: adds the task to each line. */
  constructor(logger: Logger) {
    this.#logger = logger;
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** A turn begins. `isOpen`: its lost run had asked a question. */
  begin(isOpen: boolean): void {
    this.#isOpen = isOpen;
    this.#warned = false;
  }

  ask(): void {
    this.#isOpen = true;
  }

  /**
   * Whether an event must not be stored because it came after the question. A result is stored, but streams of the message
   * have ended with the question (A2A 1.0 §11.7), so their clients do not see it at once. Both are logged for the operator.
   */
  refuses(event: AgentEvent, turn: number): boolean {
    if (!this.#isOpen) return false;
    const kind = event?.kind;
    // The answer would wait until the wait is over, which may be never.
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
    else this.#logger.warn(`${late} is seen late. ${artifactAdvice}`, fields);
  }
}

/** Whether processes have crashed while they had a run, so that it may be the cause. */
export function isSuspect(run: StoredRun | null | undefined): boolean {
  return (run?.deaths ?? 0) > 0;
}

/** What leaves a task for another process. A crash that was counted for its run in advance is taken back. */
export function handBack(suspect: StoredRun | undefined): readonly TaskEffect[] {
  const release = { effect: "lease", op: "release" } as const;
  return suspect === undefined ? [release] : [{ effect: "run", run: excused(suspect) }, release];
}

/** A run without the crash that its takeover counted in advance. */
export function excused({ turn, attempt, input, deaths = 1, outlived = 0 }: StoredRun): StoredRun {
  const before = deaths - 1;
  return { turn, attempt, input, deaths: before, outlived: Math.min(outlived, before) };
}

/** What stores keep at least. Nobody comes that far without a record. */
const maxOutlived = 10_000;

/** A run that has gone on for a while since it was taken over: it has caused none of the crashes so far, and a later one does not come from its start. */
export function acquitted({ turn, attempt, input, deaths = 0 }: StoredRun): StoredRun {
  return { turn, attempt, input, deaths, outlived: Math.min(deaths, maxOutlived) };
}

/** Whether a run that writes these has come further than the run that was lost. */
export function isProgress(records: readonly NewRecord[], effects: readonly TaskEffect[]): boolean {
  return records.length > 0 || effects.some((each) => each.effect === "checkpoint" || isResult(each));
}

/** Whether a step or a wait is over. That one has begun is no progress: it may be what crashes the process. */
function isResult(effect: TaskEffect): boolean {
  return effect.effect === "feature" && effect.op === "set" && effect.feature === stepFeature && !isBegun(effect.key);
}

/**
 * Whether a record shows that the state is out of date: the agent has begun, or was authorized elsewhere (A2A 1.0 §7.6.1). A result of
 * one delegation says nothing about the authorization that another one waits for.
 */
export function showsWork(record: NewRecord | undefined, state: TaskState): boolean {
  if (record?.kind !== "artifactUpdate") return false;
  return state === "TASK_STATE_SUBMITTED" || (state === "TASK_STATE_AUTH_REQUIRED" && record.actor !== "delegate");
}

/** The longest question about wrong fields, in characters of its lines. */
const longestQuestion = 4096;

/** Asks for a message that the agent can use: what the agent asks, and what is wrong with this one. */
export function questionOf({ ask, fields }: MessageRefused): AgentEvent {
  const missing = fields.every(({ field }) => field === "message.parts");
  // Where there was nothing to check, the agent's own question says all.
  if (ask !== undefined && missing) return asking(ask);
  const lines: string[] = [];
  let left = longestQuestion;
  for (const { field, description } of fields) {
    const text = `${field} ${description}`;
    left -= text.length;
    if (left < 0) break;
    lines.push(text);
  }
  if (lines.length < fields.length) lines.push(`${fields.length - lines.length} more`);
  return asking([
    ...(ask ?? []),
    // Many clients show text parts one after the other, with nothing between them.
    {
      text: `${ask === undefined ? "" : "\n"}The message cannot be used:\n${lines.map((each) => `- ${each}`).join("\n")}`,
    },
  ]);
}

function asking(parts: readonly Part[]): AgentEvent {
  return { kind: "status", state: "TASK_STATE_INPUT_REQUIRED", message: { parts } };
}

/** The status that the engine sets where an agent has begun, or goes on. */
export const working: StatusInit = { state: "TASK_STATE_WORKING" };

/** Effects together with the states that the agent has set since the last call. */
export function withStates(
  effects: readonly TaskEffect[],
  context: ContextView,
  host: Pick<PhaseHost, "takeState">,
): readonly TaskEffect[] {
  const ofContext = context.takeChange();
  const ofTask = host.takeState();
  if (ofContext === undefined && ofTask === undefined) return effects;
  return [...effects, ...(ofContext === undefined ? [] : [ofContext]), ...(ofTask === undefined ? [] : [ofTask])];
}

type AgentEvents = Extract<AgentOutput, AsyncGenerator<unknown, unknown, void>>;

export function isGenerator(output: AgentOutput): output is AgentEvents {
  return typeof output === "object" && output !== null && Symbol.asyncIterator in output;
}

export function isArray(yielded: AgentYield): yielded is readonly AgentEvent[] {
  return Array.isArray(yielded);
}

/** What the client reads of what an agent threw. */
export function sentenceFor(error: unknown): string {
  if (error instanceof AuthorizationNotGiven && error.kind !== "message") return safeSentences[error.kind];
  if (error instanceof DelegationFailed) return error.message;
  return isMistake(error) ? safeSentences.invalid : safeSentences.failed;
}

/** Says in the log why a task fails. `logger`: adds the task to each line. */
export function logFailure(
  logger: Logger,
  fields: { readonly owner: string; readonly turn: number },
  kind: TurnAbortKind,
  cause: unknown,
): void {
  // The operator asked for this end: a stack trace would tell nothing.
  if (kind === "shutdown") logger.warn("A task was ended, since the server stops", fields);
  else logger.error("A task failed", { ...fields, cause });
}
