import type { JsonObject, JsonValue, Part } from "@parley/a2a/internal/model/index";
import type { ExtensionTurn } from "@parley/a2a/internal/protocol/index";
import type { A2uiClientCapabilities, A2uiNegotiated } from "./capabilities.ts";
import type {
  A2uiAction,
  A2uiClientError,
  A2uiClientMessage,
  A2uiFunctionResponse,
  A2uiProblem,
  A2uiResponseError,
  A2uiServerMessageOf,
} from "./messages.ts";
import { readMessages, writeParts, type ReadMessages } from "./parts.ts";
import { serverMessage } from "./schemas.ts";
import { versions, type A2uiVersion } from "./versions.ts";
import { surfaceWriter, type A2uiSurfaceWriter } from "./writer.ts";

/** What `turn.ext()` gives an agent. */
export interface A2uiTurn<Version extends A2uiVersion = A2uiVersion> {
  /** The version. */
  readonly version: Version;
  /** The catalogs that agent and client both have, the best first. Empty: the client can show no surface, so answer with text. */
  readonly catalogs: readonly A2uiNegotiated[];
  /** What the client says that it can show; `undefined` where it says nothing. */
  readonly capabilities: A2uiClientCapabilities | undefined;
  /** What the user did; the first action of the message. `undefined` where there is none. */
  readonly action: A2uiAction | undefined;
  /** All actions of the message. */
  readonly actions: readonly A2uiAction[];
  /** What the client could not do. */
  readonly errors: readonly A2uiClientError[];
  /** What functions of the client have returned (0.10). */
  readonly functionResponses: readonly A2uiFunctionResponse[];
  /** Messages of the client that are no messages of this version. They were left out and logged. */
  readonly problems: readonly A2uiProblem[];
  /** The data of a surface, as the client has it: where the surface has `sendDataModel`. */
  dataModel(surfaceId: string): JsonObject | undefined;
  /**
   * A surface to make or to change. `undefined` where no catalog is in common: answer with text then. `catalogId`: another one of
   * `catalogs` than the first.
   *
   * @throws TypeError for a catalog that is not one of `catalogs`.
   *
   * @example
   * ```ts
   * function weather(ui: A2uiTurn<"0.9"> | undefined, degrees: number): readonly Part[] {
   *   const surface = ui?.surface("weather");
   *   if (surface === undefined) return [text(`${degrees} degrees`)];
   *   const root = { id: "root", component: "Text", text: { path: "/degrees" } };
   *   return surface.create({ components: [root], data: { degrees } });
   * }
   * ```
   */
  surface(surfaceId: string, options?: { readonly catalogId?: string }): A2uiSurfaceWriter<Version> | undefined;
  /**
   * Parts of messages that were made elsewhere, such as by a model.
   *
   * @throws TypeError for what is no message of the version: `check` says which it is.
   */
  parts(messages: readonly A2uiServerMessageOf<Version>[]): readonly Part[];
  /** What is wrong with messages that were made elsewhere. Their components are not compared with the catalog. */
  check(messages: readonly unknown[]): readonly A2uiProblem[];
  /**
   * The part that answers an action with `wantResponse` (0.10).
   *
   * @throws TypeError in an older version, and for an action without an `actionId`.
   */
  respond(action: A2uiAction, response: { readonly value: JsonValue } | { readonly error: A2uiResponseError }): Part;
}

/** What a message of the user has of A2UI. */
export interface Received extends ReadMessages<A2uiClientMessage> {
  readonly capabilities: A2uiClientCapabilities | undefined;
  readonly catalogs: readonly A2uiNegotiated[];
  readonly dataModels: Readonly<Record<string, JsonObject>>;
}

export function turnOf<Version extends A2uiVersion>(
  version: Version,
  maxBytes: number,
  turn: ExtensionTurn,
  { messages, problems, capabilities, catalogs, dataModels }: Received,
): A2uiTurn<Version> {
  const check = serverMessage[version];
  const write = (made: readonly object[]): readonly Part[] => writeParts(version, check, maxBytes, made);
  const actions = messages.flatMap(({ action, userAction }) => action ?? userAction ?? []);
  return {
    version,
    catalogs,
    capabilities,
    actions,
    action: actions[0],
    errors: messages.flatMap(({ error }) => (error === undefined ? [] : [error])),
    functionResponses: messages.flatMap(({ functionResponse: one }) => (one === undefined ? [] : [one])),
    problems,
    dataModel: (surfaceId) => (Object.hasOwn(dataModels, surfaceId) ? dataModels[surfaceId] : undefined),
    surface(surfaceId, { catalogId = catalogs[0]?.catalogId } = {}) {
      if (catalogId === undefined) return undefined;
      if (!catalogs.some((one) => one.catalogId === catalogId))
        throw new TypeError(`The client does not have the catalog ${catalogId}, or this agent does not`);
      const artifactId = `a2ui-${turn.number}-${surfaceId}`;
      return surfaceWriter({ version, surfaceId, catalogId, artifactId, write });
    },
    parts: write,
    check: (made) => readMessages(check, made).problems,
    respond({ actionId }, response) {
      if (version !== "0.10" || actionId === undefined)
        throw new TypeError("An action has a response where it has an actionId, in A2UI 0.10");
      return write([{ version: versions[version].versions[0], actionId, actionResponse: response }])[0] as Part;
    },
  };
}
