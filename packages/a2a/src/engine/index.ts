export type { SignalOptions } from "./service/signal.ts";
export { createEngine, type Engine } from "./engine.ts";
export type { DedupeOptions, EngineLimits, EngineOptions, LeaseOptions, RetentionOptions } from "./options.ts";
