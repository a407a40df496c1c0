/** Calls, independent of any wire format, and agents. */

// Calls.
export * from "./operations.ts";
export * from "./service.ts";
export * from "./caller.ts";
export * from "./intercept.ts";
export * from "./observed.ts";
export type * from "./observer.ts";
export * from "./observing.ts";
export * from "./audit.ts";

// HTTP without a runtime, and limits on memory.
export * from "./http.ts";
export * from "./byte-budget.ts";

// Agents.
export type * from "./agent.ts";
export type * from "./agent-event.ts";
export type * from "./turn.ts";
export type * from "./turn-context.ts";
export * from "./turn-errors.ts";
export * from "./steps.ts";
export * from "./authorization.ts";
export type * from "./delegation.ts";
export type * from "./files.ts";
export type * from "./extension.ts";
export type * from "./extension-hooks.ts";
