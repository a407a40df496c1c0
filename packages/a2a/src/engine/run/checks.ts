import type { Logger } from "../../base/index.ts";
import { ArtifactLedger, type TaskArtifactUpdateEvent, type TaskState } from "../../model/index.ts";
import type { AgentEvent, ArtifactEvent } from "../../protocol/index.ts";
import type { Store, TaskKey } from "../../store/index.ts";
import { agentMistake, nameOf } from "../mistakes.ts";

/**
 * Which artifacts a task has, so that an append to an unknown or closed one is found to be the agent's mistake. What
 * earlier turns and lost runs made is read from the log when an append first needs it.
 */
export class TaskArtifacts {
  readonly #store: Store;
  readonly #task: TaskKey;
  readonly #own = new ArtifactLedger();
  /** Those of the log; absent until they are needed. */
  #earlier: ArtifactLedger | undefined;

  /** `isNew`: the task is being made, its log has none. */
  constructor(store: Store, task: TaskKey, isNew: boolean) {
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

  /** Notes an event; throws when it cannot follow. A run that repeats what is stored may append to what it closed the first time. */
  note(event: ArtifactEvent, repeating: boolean): void {
    const { artifactId } = event.artifact;
    if (event.append === true && !repeating) {
      const closed = this.#own.isClosed(artifactId) ?? this.#earlier?.isClosed(artifactId);
      if (closed !== false) throw agentMistake(notOpen(artifactId, closed === true));
    }
    this.#own.note({ artifact: event.artifact, lastChunk: event.lastChunk === true });
  }

  /** What only a lost run had closed can be appended to again. */
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

/** What is wrong with an append, and how it is written right. */
function notOpen(artifactId: string, closed: boolean): string {
  const id = JSON.stringify(artifactId);
  const open = `turn.artifact({ artifactId: ${id}, parts, open: true })`;
  if (!closed) return `this task has no artifact ${id}: begin it with ${open}`;
  return `artifact ${id} is closed: open it with ${open}, and close it with { last: true } on the last append alone`;
}

/** With these a turn may end the task although it has asked something: they say why. */
const withdraws: ReadonlySet<TaskState> = new Set(["TASK_STATE_FAILED", "TASK_STATE_REJECTED", "TASK_STATE_CANCELED"]);

const askRight = "The question stands and its turn is over: return after asking, and go on in the turn of the answer.";
const showRight = "A stream of the message has ended with the question: yield results before it.";

/**
 * What a turn has asked its user. Until the answer comes the question stands: a later status of the same turn would take
 * it away before anyone could answer, so it is not stored, unless it ends the task for a reason.
 */
export class Question {
  readonly #task: TaskKey;
  readonly #logger: Logger;
  #stands = false;
  #warned = false;

  constructor(task: TaskKey, logger: Logger) {
    this.#task = task;
    this.#logger = logger;
  }

  get stands(): boolean {
    return this.#stands;
  }

  /** A turn begins. `stands`: its lost run had asked something. */
  begin(stands: boolean): void {
    this.#stands = stands;
    this.#warned = false;
  }

  ask(): void {
    this.#stands = true;
  }

  /**
   * Whether an event must not be stored, since it came after the question; the operator reads about it. A result does the
   * question no harm, but streams of the message have ended with it (§11.7), so no client sees that result at once.
   */
  silences(event: AgentEvent, turn: number): boolean {
    if (!this.#stands) return false;
    const silenced = event?.kind === "reply" || (event?.kind === "status" && !withdraws.has(event.state));
    if (silenced || (event?.kind === "artifact" && !this.#warned)) this.#report(event, turn, silenced);
    return silenced;
  }

  #report(event: AgentEvent, turn: number, silenced: boolean): void {
    const { agent, taskId } = this.#task;
    const fields = { agent, taskId, turn };
    const late = `${nameOf(event)} after turn.inputRequired()`;
    this.#warned = true;
    if (silenced) this.#logger.error(`${late} is not stored. ${askRight}`, fields);
    else this.#logger.warn(`${late} is seen late. ${showRight}`, fields);
  }
}
