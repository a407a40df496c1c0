export { declarationsOf } from "./declare.ts";
export { defineExtension, extensionMethod, type DefinedExtension, type ExtensionDefinition } from "./define.ts";
export { extensionError, type ExtensionError, type ExtensionErrorDefinition } from "./errors.ts";
export { ExtensionHooks, type Deliver } from "./hooks.ts";
export { ExtensionReader } from "./reads.ts";
export type { ExtensionsOfTurn } from "./turn.ts";
