import type { JsonObject, JsonValue } from "@parley/a2a/internal/model/index";
import { isJsonObject } from "./check.ts";
import { dataOf, Draft, growthAt, PathFault, setAt, sizeOf, stepsOf } from "./data-model.ts";
import { GrowingMap } from "./growing-map.ts";
import type {
  A2uiComponent,
  A2uiComponent08,
  A2uiProblem,
  A2uiServerMessage,
  A2uiServerMessage08,
} from "./messages.ts";
import { type A2uiEvent, maxProblems, surfaceOf } from "./parts.ts";

/* What a client shows: its surfaces, and about how much memory they take. */

/** A surface, as a renderer needs it. It is never changed: the next message makes a new one. */
export interface A2uiSurface {
  /** Its id. */
  readonly surfaceId: string;
  /** Its catalog. 0.8: absent where the agent names none, which means the one of the version. */
  readonly catalogId?: string;
  /** Whether it can be shown: its root is known, and there. */
  readonly isReady: boolean;
  /** Id of its root component: `root` from 0.9 on. */
  readonly root?: string;
  /** How it looks: `styles` in 0.8, `theme` in 0.9, `surfaceProperties` in 0.10. */
  readonly theme?: JsonObject;
  /** Whether the agent wants its data model with each message. */
  readonly sendDataModel: boolean;
  /** Its components, by their ids. */
  readonly components: ReadonlyMap<string, A2uiComponent | A2uiComponent08>;
  /** Its data. */
  readonly dataModel: JsonValue;
}

/** What a client shows of an agent. Begin with `noSurfaces`. */
export interface A2uiSurfaces {
  /** The surfaces, by their ids. */
  readonly byId: ReadonlyMap<string, A2uiSurface>;
  /** How many bytes they take in memory, about: several times as many as their JSON where that is of small values. */
  readonly bytes: number;
  /** How many messages of which message or artifact have been applied, of the last 1000: a task that is read again has them again. */
  readonly seen: ReadonlyMap<string, number>;
}

/** No surface. */
export const noSurfaces: A2uiSurfaces = Object.freeze({ byId: new Map(), bytes: 0, seen: new Map() });

/** About what an empty surface takes in memory, in bytes. */
const perSurface = 1024;
/** About what a component takes beside its JSON, in bytes. */
const perComponent = 64;
/** A surface without content. */
const emptySurface = (surfaceId: string): A2uiSurface => ({
  surfaceId,
  isReady: false,
  sendDataModel: false,
  components: new GrowingMap(),
  dataModel: {},
});

/** What a surface takes, apart from its content. */
function headBytes({ surfaceId, catalogId, root, theme }: A2uiSurface): number {
  return perSurface + sizeOf([surfaceId, catalogId, root, theme]);
}

/** What a surface takes. */
function bytesOf(surface: A2uiSurface): number {
  let bytes = headBytes(surface) + sizeOf(surface.dataModel);
  for (const component of surface.components.values()) bytes += perComponent + sizeOf(component);
  return bytes;
}

/**
 * `a2uiClientDataModel` of the surfaces whose agent wants their data with each message; `undefined` where there are none. It belongs
 * to the agent that made the surfaces, and to no other.
 */
export function clientDataModel(version: string, { byId }: A2uiSurfaces): JsonObject | undefined {
  const wanted = [...byId.values()].filter(({ sendDataModel, dataModel }) => sendDataModel && isJsonObject(dataModel));
  if (wanted.length === 0) return undefined;
  return { version, surfaces: Object.fromEntries(wanted.map(({ surfaceId, dataModel }) => [surfaceId, dataModel])) };
}

/* From the messages of an agent to what a client shows. */

/** What `reduceSurfaces()` takes. */
export interface ReduceOptions {
  /**
   * Most bytes that all surfaces take in memory, about, empty ones too. A message that exceeds it is left out as a whole, and is a problem; those after it
   * count, and what is there stays. Beside it there are at most 1000 surfaces. Default 32 MiB.
   */
  readonly maxBytes?: number;
}

/** Surfaces after some messages. */
export interface ReducedSurfaces {
  /** The surfaces. */
  readonly surfaces: A2uiSurfaces;
  /** Messages that could not be applied: the first 100. All others were. */
  readonly problems: readonly A2uiProblem[];
}

const defaultMaxBytes = 32 * 1024 * 1024;
const maxSeen = 1000;
/** Most surfaces at a time: each call makes a new map of them. */
const maxSurfaces = 1000;
/** Longest name of a message or an artifact that is remembered, in characters: agents choose their ids. */
const longestSource = 2200;

/**
 * Applies messages to surfaces, one after the other: those of an event, or a list. A message that cannot be applied is left out as a whole.
 * Nothing that was there is changed, so a renderer can compare what it gets with what it had. What a user types is applied as a
 * list, such as of `updateDataModel`. It stays where an event has a whole task: of that only what is new is applied.
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
    for (let at = from; at < messages.length; at += 1) reducer.try(messages[at] as AnyMessage, at);
  }
  return reducer.result();
}

type AnyMessage = A2uiServerMessage & A2uiServerMessage08;

/** A message that cannot be applied. */
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

  /** The first message of a piece that has not been applied. */
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

  /** Applies a message, or notes why that cannot be. */
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
    // What is left, calls of functions and responses to actions, is for the renderer itself.
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

  /** A surface of 0.9 and newer, which has to be made first. */
  #known(surfaceId: string): A2uiSurface {
    const surface = this.#surfaces.get(surfaceId);
    if (surface === undefined) throw new Unfit("", `There is no surface ${surfaceId.slice(0, 100)}`);
    return surface;
  }

  /** A surface of 0.8, which its first message makes. */
  #made(surfaceId: string): A2uiSurface {
    return this.#surfaces.get(surfaceId) ?? emptySurface(surfaceId);
  }

  /** What a surface that is new takes before anything is in it. */
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

/** The components after a change. Who has made surfaces in another way gets a copy. */
function nextOf(
  components: A2uiSurface["components"],
  changes: ReadonlyMap<string, Component>,
): A2uiSurface["components"] {
  const growing = components instanceof GrowingMap ? (components as GrowingMap<Component>) : undefined;
  return (growing ?? new GrowingMap<Component>(new Map(components))).with(changes);
}
