import type { Logger } from "@parley/a2a/internal/base/index";
import type { NewRecord } from "@parley/a2a/internal/model/index";
import type { AgentEvent } from "@parley/a2a/internal/protocol/index";
import type { FeatureEffect, TaskKey } from "../../store/index.ts";
import { exceeds } from "../shared/bytes.ts";
import { Additions, keepIn } from "../log/index.ts";
import type { RunSettings } from "../shared/settings.ts";
import { recordOf, type EventPlace } from "./translate.ts";
import { activeIn, type TurnInput } from "./turn-input.ts";

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
