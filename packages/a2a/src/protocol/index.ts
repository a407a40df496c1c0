export * from "./operations.ts";
export * from "./service.ts";
export * from "./http.ts";
export { BodyBytes, smallBody, type BodyBudget, type BodyPlace, type BodyReader } from "./body.ts";
export { GrowingBytes } from "./growing-bytes.ts";
export * from "./closes-after.ts";
export * from "./agent.ts";
export * from "./extensions.ts";
export * from "./turn-aborted.ts";
