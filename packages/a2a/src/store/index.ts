export * from "./port.ts";
export * from "./memory.ts";
// For those who write a store: the rules, and the fold as text.
export { assemble, assembleLog, assembleText, type TaskPieces } from "./assemble.ts";
export { artifactStarts } from "./artifact-text.ts";
export * from "./compact.ts";
export { messagesOf, type StoredEvent } from "./history.ts";
export * from "./bounds.ts";
export * from "./conversation.ts";
export * from "./features.ts";
export * from "./task-text.ts";
export * from "./page-budget.ts";
export * from "./room.ts";
export * from "./transition.ts";
export * from "./unavailable.ts";
