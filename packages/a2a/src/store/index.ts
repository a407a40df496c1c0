export * from "./port.ts";
export * from "./memory.ts";
// For those who write a store: the rules, and the fold as text.
export * from "./assemble.ts";
export * from "./bounds.ts";
export * from "./conversation.ts";
export * from "./task-text.ts";
export * from "./page-budget.ts";
export * from "./room.ts";
export * from "./transition.ts";
export * from "./unavailable.ts";
