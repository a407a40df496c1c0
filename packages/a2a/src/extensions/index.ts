export { defineExtension, extensionMethod, type DefinedExtension, type ExtensionDefinition } from "./define.ts";
export { extensionError, type ExtensionError, type ExtensionErrorDefinition } from "./errors.ts";
export { ExtensionHooks, type Deliver } from "./hooks.ts";
