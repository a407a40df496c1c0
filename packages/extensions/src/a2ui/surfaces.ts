import type { JsonObject, JsonValue } from "@parley/a2a/internal/model/index";
import { isJsonObject } from "../shared/values.ts";
import { dataOf, Draft, GrowingMap, growthAt, PathFault, setAt, sizeOf, stepsOf } from "./data-model.ts";
import type {
  A2uiComponent,
  A2uiComponent08,
  A2uiProblem,
  A2uiServerMessage,
  A2uiServerMessage08,
} from "./messages.ts";
import { type A2uiEvent, maxProblems, surfaceOf } from "./parts.ts";

/* The surfaces that a client shows, and their approximate memory. */

/** A surface as a renderer needs it. Immutable: each message creates a new one. */
export interface A2uiSurface {
  /** Its id. */
  readonly surfaceId: string;
  /** Its catalog. In 0.8 it may be absent, which means the catalog of the version. */
  readonly catalogId?: string;
  /** Whether it can be shown: its root component exists. */
  readonly isReady: boolean;
  /** Id of its root component; always `root` from 0.9 on. */
  readonly root?: string;
  /** Its theme: `styles` in 0.8, `theme` in 0.9, `surfaceProperties` in 0.10. */
  readonly theme?: JsonObject;
  /** Whether each message to the agent includes the surface's data. */
  readonly sendDataModel: boolean;
  /** Its components by id. */
  readonly components: ReadonlyMap<string, A2uiComponent | A2uiComponent08>;
  /** Its data. */
  readonly dataModel: JsonValue;
}

/** The surfaces of an agent. Start with `noSurfaces`. */
export interface A2uiSurfaces {
  /** The surfaces by id. */
  readonly byId: ReadonlyMap<string, A2uiSurface>;
  /** Their approximate memory in bytes, which may be several times their JSON. */
  readonly bytes: number;
  /**
   * Number of applied A2UI messages by source: an A2A message or an artifact. Keeps the last 1000 sources, so that
   * reading a task again applies only its new messages.
   */
  readonly seen: ReadonlyMap<string, number>;
}

/** No surface. */
export const noSurfaces: A2uiSurfaces = Object.freeze({ byId: new Map(), bytes: 0, seen: new Map() });

/** Approximate memory of an empty surface, in bytes. */
const perSurface = 1024;
/** Approximate memory of a component in addition to its JSON, in bytes. */
const perComponent = 64;
const emptySurface = (surfaceId: string): A2uiSurface => ({
  surfaceId,
  isReady: false,
  sendDataModel: false,
  components: new GrowingMap(),
  dataModel: {},
});

/** Memory of a surface without its content. */
function headBytes({ surfaceId, catalogId, root, theme }: A2uiSurface): number {
  return perSurface + sizeOf([surfaceId, catalogId, root, theme]);
}

function bytesOf(surface: A2uiSurface): number {
  let bytes = headBytes(surface) + sizeOf(surface.dataModel);
  for (const component of surface.components.values()) bytes += perComponent + sizeOf(component);
  return bytes;
}

/**
 * `a2uiClientDataModel` of the surfaces with `sendDataModel`; `undefined` without such surfaces. Send it only to the agent
 * that created the surfaces.
 */
export function clientDataModel(version: string, { byId }: A2uiSurfaces): JsonObject | undefined {
  const wanted = [...byId.values()].filter(({ sendDataModel, dataModel }) => sendDataModel && isJsonObject(dataModel));
  if (wanted.length === 0) return undefined;
  return { version, surfaces: Object.fromEntries(wanted.map(({ surfaceId, dataModel }) => [surfaceId, dataModel])) };
}

/* Applies the messages of an agent to surfaces. */

/** Options of `reduceSurfaces()`. */
export interface ReduceOptions {
  /**
   * Maximum memory of all surfaces, in bytes. A message that would exceed it is dropped and reported as a problem;
   * later ones still apply. There are at most 1000 surfaces. Default 32 MiB.
   */
  readonly maxBytes?: number;
}

/** Result of `reduceSurfaces()`. */
export interface ReducedSurfaces {
  /** The surfaces. */
  readonly surfaces: A2uiSurfaces;
  /** Messages that could not be applied: the first 100. */
  readonly problems: readonly A2uiProblem[];
}

const defaultMaxBytes = 32 * 1024 * 1024;
const maxSeen = 1000;
/** Maximum number of surfaces. Limited, because each call copies their map. */
const maxSurfaces = 1000;
/** Longest name of a source, in characters. Limited, because agents choose the ids in it. */
const longestSource = 2200;

/**
 * Applies the messages of an event or a list to surfaces. A message that cannot be applied is dropped as a whole.
 * Surfaces are immutable, so a renderer can compare before and after. Apply user input as a list of messages, such as
 * `updateDataModel`. An event with a whole task does not undo the input, because only new messages of the task are applied.
 *
 * @example
 * ```ts
 * const messages: A2uiServerMessage[] = [
 *   { version: "v0.9", createSurface: { surfaceId: "main", catalogId: "https://example.com/catalog" } },
 *   { version: "v0.9", updateDataModel: { surfaceId: "main", path: "/city", value: "Oslo" } },
 * ];
 * const { surfaces, problems } = reduceSurfaces(noSurfaces, messages);
 * console.log(surfaces.byId.get("main")?.dataModel, problems.length); // { city: "Oslo" } 0
 * ```
 */
export function reduceSurfaces(
  before: A2uiSurfaces,
  read: A2uiEvent | readonly (A2uiServerMessage | A2uiServerMessage08)[],
  { maxBytes = defaultMaxBytes }: ReduceOptions = {},
): ReducedSurfaces {
  const pieces = "pieces" in read ? read.pieces : [{ source: undefined, append: false, messages: read }];
  if (pieces.every(({ messages }) => messages.length === 0)) return { surfaces: before, problems: [] };
  const reducer = new Reducer(before, maxBytes, "pieces" in read && read.replay);
  for (const { source, append, messages } of pieces) {
    const from = source === undefined ? 0 : reducer.newFrom(source, append, messages.length);
    for (const [at, message] of messages.entries()) if (at >= from) reducer.try(message, at);
  }
  return reducer.result();
}

type AnyMessage = Partial<A2uiServerMessage> & A2uiServerMessage08;

class Unfit extends Error {
  readonly path: string;

  constructor(path: string, message: string) {
    super(message);
    this.path = path;
  }
}

type Component = A2uiComponent | A2uiComponent08;

/** The messages of one call. */
class Reducer {
  readonly #draft = new Draft();
  readonly #surfaces: Map<string, A2uiSurface>;
  readonly #maxBytes: number;
  readonly #replay: boolean;
  readonly #seen: Map<string, number>;
  readonly #problems: A2uiProblem[] = [];
  #bytes: number;

  constructor({ byId, bytes, seen }: A2uiSurfaces, maxBytes: number, replay: boolean) {
    this.#surfaces = new Map(byId);
    this.#seen = new Map(seen);
    this.#bytes = bytes;
    this.#maxBytes = maxBytes;
    this.#replay = replay;
  }

  result(): ReducedSurfaces {
    return { surfaces: { byId: this.#surfaces, bytes: this.#bytes, seen: this.#seen }, problems: this.#problems };
  }

  /** Records a piece as applied. Returns the index of its first message that was not applied before. */
  newFrom(source: string, append: boolean, count: number): number {
    if (source.length > longestSource) return 0;
    const before = this.#seen.get(source) ?? 0;
    this.#seen.delete(source);
    this.#seen.set(source, append ? before + count : this.#replay ? Math.max(before, count) : count);
    for (const oldest of this.#seen.keys()) {
      if (this.#seen.size <= maxSeen) break;
      this.#seen.delete(oldest);
    }
    return this.#replay ? before : 0;
  }

  /** Applies a message, or records why it cannot. */
  try(message: AnyMessage, index: number): void {
    try {
      this.#apply(message);
    } catch (thrown) {
      if (!(thrown instanceof Unfit) && !(thrown instanceof PathFault)) throw thrown;
      if (this.#problems.length >= maxProblems) return;
      const path = thrown instanceof Unfit ? thrown.path : "/updateDataModel/path";
      this.#problems.push({ index, path, message: thrown.message, ...surfaceOf(message) });
    }
  }

  #apply(message: AnyMessage): void {
    const { createSurface, updateComponents, updateDataModel, deleteSurface } = message;
    const { beginRendering, surfaceUpdate, dataModelUpdate } = message;
    if (createSurface !== undefined) this.#create(createSurface);
    else if (updateComponents !== undefined)
      this.#components(this.#known(updateComponents.surfaceId), updateComponents.components);
    else if (updateDataModel !== undefined) {
      const { surfaceId, path = "/", value } = updateDataModel;
      this.#data(this.#known(surfaceId), path, value);
    } else if (beginRendering !== undefined) this.#begin(beginRendering);
    else if (surfaceUpdate !== undefined)
      this.#components(this.#made(surfaceUpdate.surfaceId), surfaceUpdate.components);
    else if (dataModelUpdate !== undefined) {
      const { surfaceId, path = "/", contents } = dataModelUpdate;
      this.#data(this.#made(surfaceId), path, dataOf(contents));
    } else if (deleteSurface !== undefined) this.#delete(deleteSurface.surfaceId);
    // Function calls and action responses are for the renderer.
  }

  #create(init: NonNullable<A2uiServerMessage["createSurface"]>): void {
    const { surfaceId, catalogId, theme, surfaceProperties, sendDataModel = false, components, dataModel } = init;
    const before = this.#surfaces.get(surfaceId);
    if (before !== undefined && !this.#replay)
      throw new Unfit("/createSurface/surfaceId", "exists already: delete it first");
    const looks = surfaceProperties ?? theme;
    const surface: A2uiSurface = {
      ...emptySurface(surfaceId),
      catalogId,
      root: "root",
      ...(looks !== undefined && { theme: looks }),
      sendDataModel,
      components: new GrowingMap(new Map(components?.map((one) => [one.id, one]))),
      dataModel: dataModel ?? {},
    };
    this.#put(surface, bytesOf(surface) - (before === undefined ? 0 : bytesOf(before)));
  }

  #begin({ surfaceId, root, catalogId, styles }: NonNullable<A2uiServerMessage08["beginRendering"]>): void {
    const before = this.#surfaces.get(surfaceId);
    const { catalogId: _, theme: __, ...rest } = before ?? emptySurface(surfaceId);
    const surface: A2uiSurface = {
      ...rest,
      root,
      ...(catalogId !== undefined && { catalogId }),
      ...(styles !== undefined && { theme: styles }),
    };
    this.#put(surface, before === undefined ? bytesOf(surface) : headBytes(surface) - headBytes(before));
  }

  #components(surface: A2uiSurface, components: readonly Component[]): void {
    let grown = this.#firstBytes(surface);
    const byId = new Map<string, Component>(components.map((one) => [one.id, one]));
    for (const [id, one] of byId) {
      const before = surface.components.get(id);
      grown += sizeOf(one) - sizeOf(before) + (before === undefined ? perComponent : 0);
    }
    this.#room(grown);
    this.#put({ ...surface, components: nextOf(surface.components, byId) }, grown);
  }

  #data(surface: A2uiSurface, path: string, value: JsonValue | undefined): void {
    const steps = stepsOf(path);
    const grown = this.#firstBytes(surface) + growthAt(surface.dataModel, steps, value);
    this.#room(grown);
    this.#put({ ...surface, dataModel: setAt(this.#draft, surface.dataModel, steps, value) }, grown);
  }

  #delete(surfaceId: string): void {
    this.#bytes -= bytesOf(this.#known(surfaceId));
    this.#surfaces.delete(surfaceId);
  }

  /** A surface of 0.9 and later, which must have been created. */
  #known(surfaceId: string): A2uiSurface {
    const surface = this.#surfaces.get(surfaceId);
    if (surface === undefined) throw new Unfit("", `There is no surface ${surfaceId.slice(0, 100)}`);
    return surface;
  }

  /** A surface of 0.8, which its first message creates. */
  #made(surfaceId: string): A2uiSurface {
    return this.#surfaces.get(surfaceId) ?? emptySurface(surfaceId);
  }

  /** Memory of a new surface before its content. */
  #firstBytes(surface: A2uiSurface): number {
    return this.#surfaces.has(surface.surfaceId) ? 0 : bytesOf(surface);
  }

  #room(grown: number): void {
    if (grown > 0 && this.#bytes + grown > this.#maxBytes)
      throw new Unfit("", `The surfaces would be larger than ${this.#maxBytes} bytes`);
  }

  #put(surface: A2uiSurface, grown: number): void {
    this.#room(grown);
    if (this.#surfaces.size >= maxSurfaces && !this.#surfaces.has(surface.surfaceId))
      throw new Unfit("", `There are ${maxSurfaces} surfaces already: delete one first`);
    const { root, components } = surface;
    const isReady = root !== undefined && components.has(root);
    this.#surfaces.set(surface.surfaceId, { ...surface, isReady });
    this.#bytes += grown;
  }
}

/** The changed components. Surfaces made by other code are copied. */
function nextOf(
  components: A2uiSurface["components"],
  changes: ReadonlyMap<string, Component>,
): A2uiSurface["components"] {
  return (components instanceof GrowingMap ? components : new GrowingMap(new Map(components))).with(changes);
}
