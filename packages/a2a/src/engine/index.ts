export { createEngine, type Engine } from "./engine.ts";
export type {
  DedupeOptions,
  EngineLimits,
  EngineOptions,
  HostedAgent,
  LeaseOptions,
  RetentionOptions,
} from "./options.ts";
