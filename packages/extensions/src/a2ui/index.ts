/**
 * A2UI for agents and clients: user interfaces as data, in versions 0.8, 0.9, 0.9.1 and 0.10 (https://a2ui.org).
 * @packageDocumentation
 */

export { a2ui, type A2ui, type A2uiActionInit, type A2uiOptions, type A2uiTypes } from "./extension.ts";
export type { A2uiEvent, A2uiPiece } from "./event.ts";
export type { A2uiCatalog, A2uiClientCapabilities, A2uiNegotiated, A2uiParams } from "./capabilities.ts";
export type {
  A2uiAction,
  A2uiClientError,
  A2uiClientMessage,
  A2uiComponent,
  A2uiComponent08,
  A2uiComponentOf,
  A2uiEntry08,
  A2uiFunctionResponse,
  A2uiProblem,
  A2uiResponseError,
  A2uiServerMessage,
  A2uiServerMessage08,
  A2uiServerMessageOf,
} from "./messages.ts";
export { noSurfaces, type A2uiSurface, type A2uiSurfaces } from "./surface.ts";
export { reduceSurfaces, type ReducedSurfaces, type ReduceOptions } from "./surfaces.ts";
export type { A2uiTurn } from "./turn.ts";
export type { A2uiVersion } from "./versions.ts";
export type { A2uiSurfaceInit, A2uiSurfaceUpdate, A2uiSurfaceWriter } from "./writer.ts";
