import type { Logger } from "../../base/index.ts";
import type { TaskState } from "../../model/index.ts";
import type { AgentEvent } from "../../protocol/index.ts";
import type { TaskKey } from "../../store/index.ts";
import { nameOf } from "../mistakes.ts";

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
