import { utf8Length } from "@parley/a2a/internal/base/index";
import type { JsonValue } from "@parley/a2a/internal/model/index";
import type { WaitEvent } from "@parley/a2a/internal/protocol/index";
import type { StoredRun, TaskEffect } from "../../store/index.ts";
import { exceeds } from "../shared/bytes.ts";
import { agentMistake, jsonOf } from "../shared/mistakes.ts";
import type { RunSettings } from "../shared/settings.ts";
import type { LostRange } from "./replay.ts";
import { waitRow } from "./task-rows.ts";
import {
  attemptOf,
  checkpointJson,
  type StoredCheckpoint,
  type SuspendedTurn,
  type TurnInput,
  type Waiting,
} from "./turn-input.ts";

/** How many times a turn may be called again and do something else, until what it did before counts again. */
const maxLostRanges = 256;

/** What the agent saves. `events`: how many it has yielded. `asked`: it has asked a question. */
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
  /** Events after it that do not count, since a later attempt did not repeat them. */
  #lost: readonly LostRange[] = [];

  constructor({ limits }: RunSettings) {
    this.#stateBytes = limits.stateBytes;
  }

  begin(checkpoint: StoredCheckpoint | undefined): void {
    this.#last = checkpoint;
    this.#lost = checkpoint?.lost ?? [];
  }

  /** Events of an earlier attempt do not count any more. */
  lose(range: LostRange): void {
    this.#lost = [...this.#lost, range].slice(-maxLostRanges);
  }

  /** The agent saves one. `after`: up to where the log was compared with what the turn does. */
  save(saved: StoredCheckpoint, after: number): TaskEffect {
    const suspended = this.#last?.suspended;
    // The events that it covers are not compared again.
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
    const { turn, input: at } = input.resumes ?? input;
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
