/**
 * The Timestamp extension: messages and artifacts say when they were created.
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

/** The form of RFC 3339 that the extension allows: UTC, at least seconds, at most nanoseconds. */
const format = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:)(\d\d)(?:\.\d{1,9})?(?:Z|[+-]00:00)$/i;

/** A time in UTC as text. It stays as it is: a `Date` would lose its nanoseconds. */
const utcTime: Schema<string> = satisfying(
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
class Stamps {
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

/** URI of the Timestamp extension as all public samples have it. */
export const timestampUri = "https://github.com/a2aproject/a2a-samples/extensions/timestamp/v1";

/** URI of the Timestamp extension as its specification spells it. No public sample answers to it. */
export const timestampSpecificationUri = "https://github.com/a2aproject/a2a-samples/samples/extensions/timestamp/v1";

/** Options of `timestampExtension()`. */
export interface TimestampOptions {
  /** Which of the two URIs it has, and which key it writes. It reads both keys. Default: that of the samples. */
  readonly uri?: typeof timestampUri | typeof timestampSpecificationUri;
  /** Milliseconds since the Unix epoch. Default: the clock of the server or the client. */
  readonly now?: () => number;
}

/** The stamp of a message or an artifact: when it was created. */
type Stamp = Readonly<Record<"at", MetadataField<string>>>;

/** The types of the Timestamp extension. */
interface TimestampTypes extends ExtensionTypes {
  readonly metadata: { readonly message: Stamp; readonly artifact: Stamp };
  readonly data: Readonly<Record<never, never>>;
  readonly subStates: never;
  readonly methods: Readonly<Record<never, never>>;
  readonly turn: TurnReads<TimestampTypes>;
  readonly event: EventReads<TimestampTypes>;
}

/** The Timestamp extension. `message.at` and `artifact.at` say when, as their sender wrote it: `2026-01-31T12:00:00Z`. */
export type TimestampExtension = DefinedExtension<string, TimestampTypes>;

/** A key of metadata: the URI without its scheme, and the name of the field. */
const keyOf = (uri: string): string => `${uri.replace("https://", "")}/timestamp`;

/**
 * Makes a Timestamp extension. `timestamp` and `specifiedTimestamp` are made with it.
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
      if (operation !== "SendMessage" && operation !== "SendStreamingMessage") return request;
      const { message } = request as { readonly message: { readonly metadata?: JsonObject } };
      return { ...request, message: stamps.on(message, now?.() ?? clock.now()) };
    },
  });
}

/**
 * The Timestamp extension, under the URI of all public samples.
 *
 * @example
 * ```ts
 * const server = await serve(agent, { extensions: [timestamp] });
 * const client = await connect(server.url, { extensions: [timestamp] });
 * ```
 */
export const timestamp: TimestampExtension = timestampExtension();

/** The Timestamp extension under the URI of its specification, for callers that ask for that one. A server can have both. */
export const specifiedTimestamp: TimestampExtension = timestampExtension({ uri: timestampSpecificationUri });

/**
 * An agent with the Timestamp extension: what it says is stamped, and the agent need not know it.
 *
 * @example
 * ```ts
 * const server = await serve(withTimestamp(agent), { port: 4000 });
 * ```
 */
export function withTimestamp(agent: Agent, extension: TimestampExtension = timestamp): Agent {
  return { ...agent, extensions: [...(agent.extensions ?? []), extension] };
}
