/**
 * The Timestamp extension: messages and artifacts carry the time of their creation.
 * @packageDocumentation
 */

import type { Artifact, JsonObject, StreamResponse, Task, TaskStatus } from "@parley/a2a/internal/model/index";
import type {
  Agent,
  AppendedEvent,
  EventReads,
  ExtensionTypes,
  MetadataField,
  TurnReads,
} from "@parley/a2a/internal/protocol/index";
import { type DefinedExtension, defineExtension } from "@parley/a2a/internal/extensions/index";
import { standardSchema } from "@parley/a2a/internal/extensions/schemas";
import { satisfying, type Schema, string } from "@parley/a2a/internal/model/schema";
import { sendsMessage } from "../shared/values.ts";

/** The RFC 3339 form that the extension allows: UTC, from seconds to nanoseconds. */
const format = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:)(\d\d)(?:\.\d{1,9})?(?:Z|[+-]00:00)$/i;

/** Kept as text: a `Date` would lose nanoseconds. */
const utcTime: Schema<string> = satisfying(
  string,
  "must be a time in UTC as RFC 3339 has it, such as 2026-01-31T12:00:00Z",
  isTime,
);

function isTime(text: string): boolean {
  const [, minute, second] = format.exec(text) ?? [];
  if (minute === undefined) return false;
  // RFC 3339 has leap seconds, JavaScript does not.
  const whole = `${minute}${second === "60" ? "59" : second}.000Z`.toUpperCase();
  const time = Date.parse(whole);
  // Engines accept days that a month does not have, as days of the next month.
  return !Number.isNaN(time) && new Date(time).toISOString() === whole;
}

/** Adds missing timestamps, and keeps existing ones. */
class Stamps {
  readonly #key: string;
  readonly #other: string;

  constructor([key, other]: readonly [string, string]) {
    this.#key = key;
    this.#other = other;
  }

  /** Adds a timestamp to an object. `time` is in milliseconds, or text. Absent: only copies the other key's timestamp. */
  on<T extends { readonly metadata?: JsonObject }>(object: T, time?: number | string): T {
    const { metadata } = object;
    if (metadata !== undefined && Object.hasOwn(metadata, this.#key)) return object;
    const known = metadata?.[this.#other];
    const stamp = known ?? (typeof time === "number" ? new Date(time).toISOString() : time);
    return stamp === undefined ? object : { ...object, metadata: { ...metadata, [this.#key]: stamp } };
  }

  /** The agent's content is created now. Chunks appended to an artifact do not create it. */
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
   * A status message without a timestamp was made by the server, when its status was set. The age of other messages and
   * artifacts is unknown.
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

/** URI in all public samples. */
export const timestampUri = "https://github.com/a2aproject/a2a-samples/extensions/timestamp/v1";

/** URI in the specification. No public sample uses it. */
export const timestampSpecificationUri = "https://github.com/a2aproject/a2a-samples/samples/extensions/timestamp/v1";

/** Options of `timestampExtension()`. */
export interface TimestampOptions {
  /** The URI, which decides the key that is written. Both keys are read. Default: the samples' URI. */
  readonly uri?: typeof timestampUri | typeof timestampSpecificationUri;
  /** Milliseconds since the Unix epoch. Default: the clock of the server or the client. */
  readonly now?: () => number;
}

type Stamp = Readonly<Record<"at", MetadataField<string>>>;

interface TimestampTypes extends ExtensionTypes {
  readonly metadata: { readonly message: Stamp; readonly artifact: Stamp };
  readonly data: Readonly<Record<never, never>>;
  readonly subStates: never;
  readonly methods: Readonly<Record<never, never>>;
  readonly turn: TurnReads<TimestampTypes>;
  readonly event: EventReads<TimestampTypes>;
}

/**
 * The Timestamp extension. `message.at` and `artifact.at` are the times as their sender wrote them:
 * `2026-01-31T12:00:00Z`.
 */
export type TimestampExtension = DefinedExtension<string, TimestampTypes>;

const keyOf = (uri: string): string => `${uri.replace("https://", "")}/timestamp`;

/**
 * Creates a Timestamp extension, such as `timestamp` and `specifiedTimestamp`.
 *
 * @example
 * ```ts
 * const fixed = timestampExtension({ now: () => Date.UTC(2026, 0, 31, 12) });
 * ```
 */
export function timestampExtension({ uri = timestampUri, now }: TimestampOptions = {}): TimestampExtension {
  const other = uri === timestampUri ? timestampSpecificationUri : timestampUri;
  const keys = [keyOf(uri), keyOf(other)] as const;
  const stamp: Stamp = { at: { key: keys, schema: standardSchema(utcTime), volatile: true } };
  const stamps = new Stamps(keys);
  return defineExtension({
    uri,
    description: "Adds timestamps to messages and artifacts.",
    kind: "data",
    metadata: { message: stamp, artifact: stamp },
    onAppend: (event, { clock }) => stamps.appended(event, now?.() ?? clock.now()),
    onDeliver: (event) => stamps.delivered(event),
    onRequest(request, { operation, clock }) {
      if (!sendsMessage(request, operation)) return request;
      return { ...request, message: stamps.on(request.message, now?.() ?? clock.now()) };
    },
  });
}

/**
 * The Timestamp extension under the URI of the public samples.
 *
 * @example
 * ```ts
 * const server = await serve(agent, { extensions: [timestamp] });
 * const client = await connect(server.url, { extensions: [timestamp] });
 * ```
 */
export const timestamp: TimestampExtension = timestampExtension();

/** The Timestamp extension under the URI of its specification. A server can have both. */
export const specifiedTimestamp: TimestampExtension = timestampExtension({ uri: timestampSpecificationUri });

/**
 * Adds the Timestamp extension to an agent, which needs no other change.
 *
 * @example
 * ```ts
 * const server = await serve(withTimestamp(agent), { port: 4000 });
 * ```
 */
export function withTimestamp(agent: Agent, extension: TimestampExtension = timestamp): Agent {
  return { ...agent, extensions: [...(agent.extensions ?? []), extension] };
}
