/**
 * A2UI for agents and clients: user interfaces as data, in versions 0.8, 0.9, 0.9.1 and 0.10 (https://a2ui.org).
 * @packageDocumentation
 */

export { a2ui, type A2ui, type A2uiActionInit, type A2uiOptions, type A2uiTypes } from "./extension.ts";
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
