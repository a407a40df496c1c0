export * from "./port.ts";
export * from "./memory/store.ts";
// For authors of stores: the rules, and the fold as text.
export {
  artifactStarts,
  assemble,
  assembleLog,
  assembleText,
  baseOf,
  compact,
  messagesOf,
  type StoredEvent,
  type TaskPieces,
} from "./assemble.ts";
export * from "./bounds.ts";
export * from "./conversation.ts";
export * from "./task-text.ts";
export * from "./transition.ts";
export * from "./upkeep.ts";
