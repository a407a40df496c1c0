/**
 * A2UI for agents and clients: user interfaces as data, in versions 0.8, 0.9, 0.9.1 and 0.10 (https://a2ui.org).
 * @packageDocumentation
 */

import { systemClock } from "@parley/a2a/internal/base/index";
import type { JsonObject, Message, Part } from "@parley/a2a/internal/model/index";
import type { DataPartField, ExtensionTypes, MetadataField } from "@parley/a2a/internal/protocol/index";
import { defineExtension, type DefinedExtension } from "@parley/a2a/internal/extensions/index";
import {
  checkCapabilities,
  checkDataModel,
  checkParams,
  negotiate,
  readCapabilities,
  readDataModel,
  writeCapabilities,
  type A2uiCatalog,
  type A2uiClientCapabilities,
  type A2uiParams,
} from "./capabilities.ts";
import {
  type A2uiAction,
  type A2uiClientError,
  type A2uiClientMessage,
  type A2uiVersion,
  versions,
} from "./messages.ts";
import {
  type A2uiEvent,
  checkEnvelope,
  isPartOf,
  onlyRight,
  readEvent,
  readParts,
  report,
  type DropLog,
  writePart,
  writeParts,
} from "./parts.ts";
import { isJsonList, isJsonObject, sendsMessage } from "../shared/values.ts";
import { clientMessage, schemaOf } from "./schemas.ts";
import { clientDataModel, type A2uiSurfaces } from "./surfaces.ts";
import { turnOf, type A2uiTurn } from "./turn.ts";

export type { A2uiEvent, A2uiPiece } from "./parts.ts";
export type { A2uiCatalog, A2uiClientCapabilities, A2uiNegotiated, A2uiParams } from "./capabilities.ts";
export {
  type A2uiAction,
  type A2uiClientError,
  type A2uiClientMessage,
  type A2uiComponent,
  type A2uiComponent08,
  type A2uiComponentOf,
  type A2uiEntry08,
  type A2uiFunctionResponse,
  type A2uiProblem,
  type A2uiResponseError,
  type A2uiServerMessage,
  type A2uiServerMessage08,
  type A2uiServerMessageOf,
  type A2uiVersion,
} from "./messages.ts";
export {
  noSurfaces,
  type A2uiSurface,
  type A2uiSurfaces,
  reduceSurfaces,
  type ReducedSurfaces,
  type ReduceOptions,
} from "./surfaces.ts";
export { type A2uiTurn, type A2uiSurfaceInit, type A2uiSurfaceUpdate, type A2uiSurfaceWriter } from "./turn.ts";

/** Options of `a2ui()`. */
export interface A2uiOptions<Version extends A2uiVersion = A2uiVersion> {
  /** The version. Use one extension per version. */
  readonly version: Version;
  /** Ids of the catalogs that the agent uses or the client shows, best first. Default: the catalog of the version. */
  readonly catalogs?: readonly string[];
  /** For agents: whether clients may define catalogs in their messages. Default false. */
  readonly acceptsInlineCatalogs?: boolean;
  /** For clients: catalogs that it defines. Sent only to agents that accept them. */
  readonly inlineCatalogs?: readonly A2uiCatalog[];
  /** For clients: the surfaces of this agent. Data of surfaces with `sendDataModel` is sent with each message. */
  readonly surfaces?: () => A2uiSurfaces;
  /** Largest data of a part as JSON, in bytes. Larger parts are rejected. Default 1 MiB. */
  readonly maxBytes?: number;
}

/** Input of `action()`. The default time is now. */
export type A2uiActionInit = Omit<A2uiAction, "timestamp" | "context"> &
  Partial<Pick<A2uiAction, "timestamp" | "context">>;

/** The types of the extension, for `turn.ext()` and `event.ext()`. */
export interface A2uiTypes<Version extends A2uiVersion> extends ExtensionTypes {
  /** Metadata of the client's messages. */
  readonly metadata: {
    readonly message: {
      readonly capabilities: MetadataField<A2uiClientCapabilities | undefined>;
      readonly dataModels: MetadataField<Readonly<Record<string, JsonObject>>>;
    };
  };
  /** Lists of messages. */
  readonly data: { readonly messages: DataPartField<readonly JsonObject[]> };
  /** None. */
  readonly subStates: never;
  /** None. */
  readonly methods: Readonly<Record<never, never>>;
  /** Result of `turn.ext()`. */
  readonly turn: A2uiTurn<Version>;
  /** Result of `event.ext()`. */
  readonly event: A2uiEvent<Version>;
}

/** A2UI in one version: an extension, and builders for the parts that a client sends. */
export type A2ui<Version extends A2uiVersion = A2uiVersion> = DefinedExtension<string, A2uiTypes<Version>> & {
  /** The version. */
  readonly version: Version;
  /** The media type of its parts. Agents that accept actions list it in `defaultInputModes`. */
  readonly mediaType: string;
  /**
   * A part that reports a user action.
   *
   * @throws TypeError for an invalid action.
   *
   * @example
   * ```ts
   * const ui = a2ui({ version: "0.9" });
   * const pressed = ui.action({ name: "refresh", surfaceId: "weather", sourceComponentId: "again" });
   * await client.sendMessage({ message: { parts: [pressed], taskId } });
   * ```
   */
  action(init: A2uiActionInit): Part;
  /**
   * A part that reports an error of the client.
   *
   * @throws TypeError for an invalid error.
   */
  error(error: A2uiClientError): Part;
  /**
   * Parts of other client messages, such as a `functionResponse` (0.10).
   *
   * @throws TypeError for an invalid message.
   */
  clientParts(messages: readonly A2uiClientMessage[]): readonly Part[];
};

const defaultMaxBytes = 1024 * 1024;

/**
 * A2UI: agents send user interfaces as data, and the client renders them with its own components (https://a2ui.org).
 *
 * @throws TypeError for an unknown version.
 *
 * @example
 * ```ts
 * const ui = a2ui({ version: "0.9", catalogs: ["https://example.com/catalogs/forms/v1"] });
 * ```
 */
export function a2ui<Version extends A2uiVersion>(options: A2uiOptions<Version>): A2ui<Version> {
  const { version, maxBytes = defaultMaxBytes } = options;
  if (!Object.hasOwn(versions, version))
    throw new TypeError(`version must be one of ${Object.keys(versions).join(", ")}; got ${version}`);
  const { uri, mediaType } = versions[version];
  const { catalogs = versions[version].basicCatalogs, acceptsInlineCatalogs = false } = options;
  const params: A2uiParams = { supportedCatalogIds: catalogs, ...(acceptsInlineCatalogs && { acceptsInlineCatalogs }) };
  const turns = new WeakMap<WeakKey, DropLog>();
  const write = (messages: readonly object[]): readonly Part[] =>
    writeParts(version, clientMessage[version], maxBytes, messages);

  const extension = defineExtension({
    uri,
    description: `User interfaces by A2UI ${version}`,
    // Invalid messages are dropped, and the conversation continues in text.
    kind: "data",
    params: { ...params },
    paramsSchema: schemaOf(checkParams, (value) => value as A2uiParams),
    metadata: {
      message: {
        capabilities: {
          key: "a2uiClientCapabilities",
          schema: schemaOf(checkCapabilities(version), (value) => readCapabilities(version, value)),
        },
        dataModels: {
          key: "a2uiClientDataModel",
          schema: schemaOf(checkDataModel(version), (value) => readDataModel(version, value)),
        },
      },
    },
    data: {
      messages: {
        mediaType,
        matches: (part: Part) => isPartOf(version, part),
        schema: schemaOf(checkEnvelope(version, maxBytes), listOf),
      },
    },
    onTurnStart(turn, { message: { capabilities, dataModels = {} } }): A2uiTurn<Version> {
      const read = readParts<A2uiClientMessage>(version, clientMessage[version], maxBytes, turn.message.parts);
      const log = { logger: turn.logger, uri, taskId: turn.taskId };
      report(log, "Dropped an invalid A2UI message from a client", read.problems);
      const agreed = negotiate(version, params, capabilities);
      const started = turnOf(version, maxBytes, turn, { ...read, capabilities, catalogs: agreed, dataModels });
      turns.set(started, log);
      return started;
    },
    onAppend(event, { started }) {
      const { problems, event: right } = onlyRight(version, maxBytes, event);
      const log = typeof started === "object" && started !== null ? turns.get(started) : undefined;
      if (log !== undefined) report(log, "Dropped an invalid A2UI message from the agent", problems);
      return right;
    },
    onRequest(request, { operation, params: offered }) {
      if (!sendsMessage(request, operation)) return request;
      return { ...request, message: withOwn(options, catalogs, offered, request.message) };
    },
    onEvent(event): A2uiEvent<Version> {
      return readEvent(version, maxBytes, event);
    },
  });

  const [written] = versions[version].versions;
  const one = (kind: string, content: object): Part =>
    writePart(version, clientMessage[version], maxBytes, {
      ...(written !== undefined && { version: written }),
      [kind]: content,
    });
  return Object.freeze({
    ...extension,
    version,
    mediaType,
    action: ({ timestamp = new Date(systemClock.now()).toISOString(), context = {}, ...init }: A2uiActionInit) =>
      one(written === undefined ? "userAction" : "action", { ...init, timestamp, context }),
    error: (error: A2uiClientError) => one("error", error),
    clientParts: write,
  }) as never;
}

function listOf(data: unknown): readonly JsonObject[] {
  return (isJsonList(data) ? data : [data]) as readonly JsonObject[];
}

/** The message with the client's capabilities and data models. */
function withOwn(
  { version, inlineCatalogs = [], surfaces }: A2uiOptions,
  catalogs: readonly string[],
  offered: unknown,
  message: Message,
): Message {
  const own = {
    supportedCatalogIds: catalogs,
    // "This should only be provided if the agent declares `acceptsInlineCatalogs: true`."
    inlineCatalogs: isJsonObject(offered) && offered["acceptsInlineCatalogs"] === true ? inlineCatalogs : [],
  };
  const capabilities = writeCapabilities(version, own, message.metadata?.["a2uiClientCapabilities"]);
  const [written] = versions[version].versions;
  const dataModel = written === undefined || surfaces === undefined ? undefined : clientDataModel(written, surfaces());
  return {
    ...message,
    metadata: {
      ...message.metadata,
      a2uiClientCapabilities: capabilities,
      ...(dataModel !== undefined && { a2uiClientDataModel: dataModel }),
    },
  };
}
