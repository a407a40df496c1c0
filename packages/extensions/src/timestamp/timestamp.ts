import type { JsonObject } from "@parley/a2a/internal/model/index";
import type { Agent, EventReads, ExtensionTypes, MetadataField, TurnReads } from "@parley/a2a/internal/protocol/index";
import { defineExtension, type DefinedExtension } from "@parley/a2a/internal/extensions/index";
import { standardSchema } from "@parley/a2a/internal/extensions/schemas";
import { Stamps, utcTime } from "./stamps.ts";

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
