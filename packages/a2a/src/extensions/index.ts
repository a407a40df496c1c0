export { defineExtension, extensionMethod, type DefinedExtension, type ExtensionDefinition } from "./define.ts";
export { ExtensionHooks, type Deliver } from "./hooks.ts";
