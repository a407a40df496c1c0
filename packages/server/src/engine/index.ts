export type { DeleteOwnerOptions, Erasure } from "./owner-data.ts";
export { createEngine, type Engine } from "./engine.ts";
export type {
  DedupeOptions,
  EngineLimits,
  EngineOptions,
  LeaseOptions,
  RetentionOptions,
  TaskTimes,
} from "./shared/options.ts";
