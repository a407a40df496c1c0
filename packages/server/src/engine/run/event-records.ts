import type { Logger } from "@parley/a2a/internal/base/index";
import type { NewRecord } from "@parley/a2a/internal/model/index";
import type { AgentEvent } from "@parley/a2a/internal/protocol/index";
import type { FeatureEffect, TaskKey } from "../../store/index.ts";
import { Additions, artifactRecord, keepIn, statusRecord, type Origin, type StatusInit } from "../log/index.ts";
import { exceeds } from "../shared/bytes.ts";
import { agentMistake } from "../shared/mistakes.ts";
import type { RunSettings } from "../shared/settings.ts";
import { activeIn, type TurnInput } from "./turn-input.ts";

/** Where an event of an agent stands. */
export interface EventPlace {
  readonly key: TaskKey;
  readonly origin: Origin;
  /** Whose it is: one of a delegation comes from another agent. */
  readonly actor: "agent" | "delegate";
  /** Its number in its turn, for the id of its message. */
  readonly number: string;
  /** In milliseconds since the Unix epoch. */
  readonly time: number;
}

/**
 * The record of an event that an agent yielded, or that came from another agent.
 *
 * @throws A2AError `InvalidAgentResponse` for what is no event.
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
      // The task was made before the answer was known: the answer completes it.
      return status({ state: "TASK_STATE_COMPLETED", message: event.message }, place);
    default:
      throw agentMistake(
        typeof event === "object" && event !== null && Symbol.asyncIterator in event
          ? "it is a stream of events: write yield* turn.stream(…), with the star"
          : "it is no event: yield what the builders of the turn give, turn.working() or turn.artifact()",
      );
  }
}

function status(init: StatusInit, { key, origin, actor, number, time }: EventPlace): NewRecord {
  const messageId = `${key.taskId}-${origin.turn}-${origin.attempt}-${number}`;
  return statusRecord(origin, init, actor, messageId, time);
}

/** What the extensions of a turn make of the events of one task. What those of kind `data` add is left out where it has no room. */
export class ExtendedEvents {
  readonly additions: Additions;
  readonly #settings: RunSettings;
  readonly #key: TaskKey;
  readonly #contextId: string;

  readonly #logger: Logger;

  /** `logger`: adds the task to each line. */
  constructor(settings: RunSettings, key: TaskKey, contextId: string, logger: Logger) {
    this.additions = new Additions(logger);
    this.#logger = logger;
    this.#settings = settings;
    this.#key = key;
    this.#contextId = contextId;
  }

  /** The record of an event, and the event as the extensions leave it. `kept`: takes the rows that they keep with it. */
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

  /** A status of the server with what extensions add to it, or without where that is too large. */
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
    const { message } = input.resumes ?? input;
    const { clock, extensions } = this.#settings;
    const { taskId } = this.#key;
    const turn = { contextId: this.#contextId, taskId, message, extensions: activeIn(input), clock };
    return extensions.append(event, turn, input.active, { keep: keepIn(effects) }, bare, this.#logger);
  }
}
