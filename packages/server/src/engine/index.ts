export type { DeleteOwnerOptions, Erasure } from "./owner-data.ts";
export { createEngine, type Engine } from "./engine.ts";
export type { EngineLimits } from "./limits.ts";
export type { DedupeOptions, EngineOptions, LeaseOptions, RetentionOptions, TaskTimes } from "./options.ts";
