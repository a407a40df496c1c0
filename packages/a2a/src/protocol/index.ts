export * from "./operations.ts";
export * from "./service.ts";
export { Payload } from "./payload.ts";
export { TextPayload } from "./text-payload.ts";
export { intercept, type Interceptor } from "./intercept.ts";
export { mapItems } from "./map-items.ts";
export {
  endedBy,
  safeObserver,
  type Ended,
  type ObservedAppend,
  type ObservedCall,
  type ObservedCommit,
  type ObservedRequest,
  type ObservedTurn,
  type Observer,
} from "./observer.ts";
export { observeCalls, observeRequests } from "./observing.ts";
export * from "./http.ts";
export type { PeerCertificate, RequestFacts } from "./facts.ts";
export { BodyBytes, smallBody, type BodyBudget, type BodyPlace, type BodyReader } from "./body.ts";
export { ByteBudget } from "./byte-budget.ts";
export { GrowingBytes } from "./growing-bytes.ts";
export * from "./closes-after.ts";
export * from "./agent.ts";
export * from "./extensions.ts";
export * from "./turn-aborted.ts";
