import type { JsonObject, JsonValue } from "@parley/a2a/internal/model/index";
import { isJsonObject } from "./check.ts";
import { sizeOf } from "./data-model.ts";
import { GrowingMap } from "./growing-map.ts";
import type { A2uiComponent, A2uiComponent08 } from "./messages.ts";

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
export const perComponent = 64;
/** A surface without content. */
export const emptySurface = (surfaceId: string): A2uiSurface => ({
  surfaceId,
  isReady: false,
  sendDataModel: false,
  components: new GrowingMap(),
  dataModel: {},
});

/** What a surface takes, apart from its content. */
export function headBytes({ surfaceId, catalogId, root, theme }: A2uiSurface): number {
  return perSurface + sizeOf([surfaceId, catalogId, root, theme]);
}

/** What a surface takes. */
export function bytesOf(surface: A2uiSurface): number {
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
