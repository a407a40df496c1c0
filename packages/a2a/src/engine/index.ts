export { createEngine, type Engine } from "./engine.ts";
export type { EngineLimits } from "./limits.ts";
export type { DedupeOptions, EngineOptions, LeaseOptions, RetentionOptions } from "./options.ts";
