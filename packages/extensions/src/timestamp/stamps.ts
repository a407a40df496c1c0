import type { Artifact, JsonObject, StreamResponse, Task, TaskStatus } from "@parley/a2a/internal/model/index";
import { satisfying, string, type Schema } from "@parley/a2a/internal/model/schema";
import type { AppendedEvent } from "@parley/a2a/internal/protocol/index";

/** The form of RFC 3339 that the extension allows: UTC, at least seconds, at most nanoseconds. */
const format = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:)(\d\d)(?:\.\d{1,9})?(?:Z|[+-]00:00)$/i;

/** A time in UTC as text. It stays as it is: a `Date` would lose its nanoseconds. */
export const utcTime: Schema<string> = satisfying(
  string,
  "must be a time in UTC as RFC 3339 has it, such as 2026-01-31T12:00:00Z",
  isTime,
);

function isTime(text: string): boolean {
  const [, minute, second] = format.exec(text) ?? [];
  if (minute === undefined) return false;
  // RFC 3339 has leap seconds, and JavaScript has none.
  const whole = `${minute}${second === "60" ? "59" : second}.000Z`.toUpperCase();
  const time = Date.parse(whole);
  // Of a day that its month does not have, engines make one of the next month.
  return !Number.isNaN(time) && new Date(time).toISOString() === whole;
}

/** Puts stamps where there are none: what has one keeps it. */
export class Stamps {
  readonly #key: string;
  readonly #other: string;

  constructor([key, other]: readonly [string, string]) {
    this.#key = key;
    this.#other = other;
  }

  /** A message or an artifact with a stamp. `time` in milliseconds, or as text. Absent: only what has a stamp under the other key gets one. */
  on<T extends { readonly metadata?: JsonObject }>(object: T, time?: number | string): T {
    const { metadata } = object;
    if (metadata !== undefined && Object.hasOwn(metadata, this.#key)) return object;
    const known = metadata?.[this.#other];
    const stamp = known ?? (typeof time === "number" ? new Date(time).toISOString() : time);
    return stamp === undefined ? object : { ...object, metadata: { ...metadata, [this.#key]: stamp } };
  }

  /** What the agent says is created now. Chunks that are added to an artifact do not create it. */
  appended(event: AppendedEvent, now: number): AppendedEvent {
    switch (event.kind) {
      case "artifact":
        return event.append === true ? event : { ...event, artifact: this.on<Artifact>(event.artifact, now) };
      case "reply":
        return { ...event, message: this.on(event.message, now) };
      case "status":
        return event.message === undefined ? event : { ...event, message: this.on(event.message, now) };
      default:
        return event;
    }
  }

  /**
   * A status message without a stamp is one of the server, such as that of a failure, or of a turn without the extension. It was created when
   * its status was set. When other messages and artifacts were created, nobody knows: they have no stamp.
   */
  delivered(event: StreamResponse): StreamResponse {
    if (event.message !== undefined) return { message: this.on(event.message) };
    if (event.statusUpdate !== undefined) return { statusUpdate: this.#withStatus(event.statusUpdate) };
    if (event.artifactUpdate !== undefined) {
      return { artifactUpdate: { ...event.artifactUpdate, artifact: this.on(event.artifactUpdate.artifact) } };
    }
    const { artifacts, history, ...task } = this.#withStatus<Task>(event.task);
    return {
      task: {
        ...task,
        ...(artifacts && { artifacts: artifacts.map((artifact) => this.on(artifact)) }),
        ...(history && { history: history.map((message) => this.on(message)) }),
      },
    };
  }

  #withStatus<T extends { readonly status: TaskStatus }>(of: T): T {
    const { message, timestamp: set } = of.status;
    return message === undefined ? of : { ...of, status: { ...of.status, message: this.on(message, set) } };
  }
}
