import type { Artifact, JsonObject, JsonValue, Part } from "@parley/a2a/internal/model/index";
import type { AgentEvent, ExtensionTurn } from "@parley/a2a/internal/protocol/index";
import type { A2uiClientCapabilities, A2uiNegotiated } from "./capabilities.ts";
import {
  type A2uiAction,
  type A2uiClientError,
  type A2uiClientMessage,
  type A2uiComponentOf,
  type A2uiFunctionResponse,
  type A2uiProblem,
  type A2uiResponseError,
  type A2uiServerMessageOf,
  type A2uiVersion,
  versions,
} from "./messages.ts";
import { readMessages, type ReadMessages, writePart, writeParts } from "./parts.ts";
import { serverMessage } from "./schemas.ts";
import { entriesOf } from "./data-model.ts";

/** Result of `turn.ext()` for an agent. */
export interface A2uiTurn<Version extends A2uiVersion = A2uiVersion> {
  /** The version. */
  readonly version: Version;
  /**
   * The catalogs that agent and client share, best first. Empty: the client can show no surface, so answer with text.
   */
  readonly catalogs: readonly A2uiNegotiated[];
  /** The client's capabilities; `undefined` if it declares none. */
  readonly capabilities: A2uiClientCapabilities | undefined;
  /** The first user action of the message, if any. */
  readonly action: A2uiAction | undefined;
  /** All actions of the message. */
  readonly actions: readonly A2uiAction[];
  /** Errors of the client. */
  readonly errors: readonly A2uiClientError[];
  /** Results of client functions (0.10). */
  readonly functionResponses: readonly A2uiFunctionResponse[];
  /** Invalid messages of the client, which were dropped and logged. */
  readonly problems: readonly A2uiProblem[];
  /** The client's data of a surface with `sendDataModel`. */
  dataModel(surfaceId: string): JsonObject | undefined;
  /**
   * A writer for a new or existing surface; `undefined` if no catalog is shared: then answer with text. `catalogId`:
   * one of `catalogs`. Default: the first.
   *
   * @throws TypeError for a catalog that is not in `catalogs`.
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
   * Parts of messages made elsewhere, for example by a model.
   *
   * @throws TypeError for an invalid message. Use `check` to find it.
   */
  parts(messages: readonly A2uiServerMessageOf<Version>[]): readonly Part[];
  /** Problems of messages made elsewhere. Components are not checked against the catalog. */
  check(messages: readonly unknown[]): readonly A2uiProblem[];
  /**
   * The part that answers an action with `wantResponse` (0.10).
   *
   * @throws TypeError in an older version, and for an action without an `actionId`.
   */
  respond(action: A2uiAction, response: { readonly value: JsonValue } | { readonly error: A2uiResponseError }): Part;
}

interface Received extends ReadMessages<A2uiClientMessage> {
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
        throw new TypeError(`The client and this agent do not share the catalog ${catalogId}`);
      const artifactId = `a2ui-${turn.number}-${surfaceId}`;
      return surfaceWriter({ version, surfaceId, catalogId, artifactId, write });
    },
    parts: write,
    check: (made) => readMessages(check, made).problems,
    respond({ actionId }, response) {
      if (version !== "0.10" || actionId === undefined)
        throw new TypeError("respond() needs an action with an actionId, which only A2UI 0.10 has");
      const message = { version: versions[version].versions[0], actionId, actionResponse: response };
      return writePart(version, check, maxBytes, message);
    },
  };
}

/** Initial content of a surface. */
export interface A2uiSurfaceInit<Version extends A2uiVersion = A2uiVersion> {
  /** Its components, one with the id of the root. More can follow. */
  readonly components: readonly A2uiComponentOf<Version>[];
  /** Its data. */
  readonly data?: JsonObject;
  /** Its theme: `theme`, in 0.8 `styles`, in 0.10 `surfaceProperties`. The catalog defines its members. */
  readonly theme?: JsonObject;
  /** Whether the client sends the data with each message. Default false. Not in 0.8. */
  readonly sendDataModel?: boolean;
  /** 0.8: id of the root. Default `root`, which is fixed in later versions. */
  readonly root?: string;
}

/** A change of a surface: components, a value at a path, or both. */
export interface A2uiSurfaceUpdate<Version extends A2uiVersion = A2uiVersion> {
  /** Components to add or replace. */
  readonly components?: readonly A2uiComponentOf<Version>[];
  /** JSON pointer into the data, such as `/user/name`. Default: the whole data. */
  readonly path?: string;
  /** The value at that path; `undefined` removes it. In 0.8 an object or an array. */
  readonly value?: JsonValue | undefined;
}

/**
 * Writes a surface for the agent: its results are parts of an artifact or a message. The surface lives in the client,
 * so a later turn changes it under the same id.
 */
export interface A2uiSurfaceWriter<Version extends A2uiVersion = A2uiVersion> {
  /** Its id. */
  readonly surfaceId: string;
  /** The catalog of its components. */
  readonly catalogId: string;
  /**
   * The parts that create it.
   *
   * @throws TypeError for an invalid message.
   */
  create(init: A2uiSurfaceInit<Version>): readonly Part[];
  /** The parts that change it. Throws as `create` does. */
  update(update: A2uiSurfaceUpdate<Version>): readonly Part[];
  /** The part that deletes it. */
  delete(): readonly Part[];
  /**
   * Creates it, and applies each update, as one growing artifact. A resumed run repeats everything, so do not use it in
   * a turn that saves checkpoints: yield the parts instead.
   *
   * @example
   * ```ts
   * async function* show(surface: A2uiSurfaceWriter<"0.9">, percents: AsyncIterable<number>): AsyncGenerator<AgentEvent> {
   *   async function* updates(): AsyncGenerator<A2uiSurfaceUpdate<"0.9">> {
   *     for await (const value of percents) yield { path: "/percent", value };
   *   }
   *   const root = { id: "root", component: "Text", text: { path: "/percent" } };
   *   yield* surface.stream({ components: [root], data: { percent: 0 } }, updates());
   * }
   * ```
   */
  stream(
    init: A2uiSurfaceInit<Version>,
    updates: AsyncIterable<A2uiSurfaceUpdate<Version>> | Iterable<A2uiSurfaceUpdate<Version>>,
    artifact?: Pick<Artifact, "name" | "description">,
  ): AsyncGenerator<AgentEvent, void, void>;
}

interface WriterOptions {
  readonly version: A2uiVersion;
  readonly surfaceId: string;
  readonly catalogId: string;
  readonly artifactId: string;
  readonly write: (messages: readonly object[]) => readonly Part[];
}

function surfaceWriter<Version extends A2uiVersion>(options: WriterOptions): A2uiSurfaceWriter<Version> {
  const { version, surfaceId, catalogId, artifactId, write } = options;
  const [written] = versions[version].versions;
  const create = (init: A2uiSurfaceInit): readonly Part[] =>
    write(written === undefined ? made08(options, init) : made(options, written, init));
  const update = (change: A2uiSurfaceUpdate): readonly Part[] =>
    write(written === undefined ? changed08(surfaceId, change) : changed(surfaceId, written, change));
  return {
    surfaceId,
    catalogId,
    create,
    update,
    delete: () => write([{ ...(written !== undefined && { version: written }), deleteSurface: { surfaceId } }]),
    async *stream(init, updates, { name, description } = {}) {
      const head = { ...(name !== undefined && { name }), ...(description !== undefined && { description }) };
      yield { kind: "artifact", artifact: { artifactId, ...head, parts: create(init) } };
      for await (const change of updates)
        yield { kind: "artifact", artifact: { artifactId, parts: update(change) }, append: true };
    },
  };
}

function made(
  { version, surfaceId, catalogId }: WriterOptions,
  written: string,
  { components, data, theme, sendDataModel }: A2uiSurfaceInit,
): readonly object[] {
  const looks = theme && { [version === "0.10" ? "surfaceProperties" : "theme"]: theme };
  return [
    {
      version: written,
      createSurface: { surfaceId, catalogId, ...looks, ...(sendDataModel !== undefined && { sendDataModel }) },
    },
    { version: written, updateComponents: { surfaceId, components } },
    ...(data === undefined ? [] : [{ version: written, updateDataModel: { surfaceId, path: "/", value: data } }]),
  ];
}

/** In 0.8 components come before the message that shows them. */
function made08(
  { surfaceId, catalogId }: WriterOptions,
  { components, data, theme, root = "root" }: A2uiSurfaceInit,
): readonly object[] {
  return [
    { surfaceUpdate: { surfaceId, components } },
    ...(data === undefined ? [] : [{ dataModelUpdate: { surfaceId, contents: entriesOf(data) } }]),
    { beginRendering: { surfaceId, root, catalogId, ...(theme !== undefined && { styles: theme }) } },
  ];
}

function changed(surfaceId: string, version: string, change: A2uiSurfaceUpdate): readonly object[] {
  const { components, path = "/", value } = change;
  const setsData = "value" in change || change.path !== undefined;
  return [
    ...(components === undefined ? [] : [{ version, updateComponents: { surfaceId, components } }]),
    ...(setsData ? [{ version, updateDataModel: { surfaceId, path, ...(value !== undefined && { value }) } }] : []),
  ];
}

function changed08(surfaceId: string, change: A2uiSurfaceUpdate): readonly object[] {
  const { components, path, value } = change;
  const setsData = "value" in change || path !== undefined;
  const data = typeof value === "object" && value !== null ? value : undefined;
  if (setsData && data === undefined)
    throw new TypeError("A2UI 0.8 sets objects and arrays only: set the object that contains the value");
  return [
    ...(components === undefined ? [] : [{ surfaceUpdate: { surfaceId, components } }]),
    ...(data === undefined
      ? []
      : [{ dataModelUpdate: { surfaceId, ...(path !== undefined && { path }), contents: entriesOf(data) } }]),
  ];
}
