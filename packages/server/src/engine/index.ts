export type { DeleteOwnerOptions, Erasure } from "./owner-data.ts";
export { createEngine, type Engine } from "./engine.ts";
export type { EngineLimits } from "./shared/options.ts";
export type { DedupeOptions, EngineOptions, LeaseOptions, RetentionOptions, TaskTimes } from "./shared/options.ts";
