export * from "./types.ts";
export * from "./card.ts";
export * from "./errors.ts";
export * from "./states.ts";
export * from "./log.ts";
export * from "./reduce.ts";
