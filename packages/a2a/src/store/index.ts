export * from "./port.ts";
export * from "./memory.ts";
export * from "./assemble.ts";
export * from "./transition.ts";
