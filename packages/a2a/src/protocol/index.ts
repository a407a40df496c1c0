/** What a call is, apart from any wire, and what an agent is. */

// Calls.
export * from "./operations.ts";
export * from "./service.ts";
export { resourceOf } from "./resource.ts";
export { longestName, taskFields } from "./task-fields.ts";
export { callerToken, carryVerifiedToken, principalOfCall, withVerifiedToken } from "./caller-token.ts";
export { hasWrongCredentials, judgeCredentials } from "./judged-credentials.ts";
export { Payload, TextPayload } from "./payload.ts";
export type { InlineFiles, TurnFiles } from "./inline-files.ts";
export type * from "./incoming-files.ts";
export { intercept, interceptClient, mapItems, spreadable, type Interceptor } from "./intercept.ts";
export {
  observe,
  observeCalls,
  observeRequests,
  safeObserver,
  type Begun,
  type DeliveryResult,
  type Ended,
  type Gauges,
  type Observation,
  type ObservedAppend,
  type ObservedCall,
  type ObservedCard,
  type ObservedCommit,
  type ObservedDelivery,
  type ObservedRequest,
  type ObservedRetry,
  type ObservedTurn,
  type Observer,
  type ProcessGauges,
  type StoreGauges,
} from "./observer.ts";
export { auditLog, auditedSubject, safeAudit, type Audit, type AuditRecord } from "./audit.ts";
export { unmet, type Unmet } from "./requirements.ts";

// HTTP without a runtime, and limits on memory.
export type * from "./http.ts";
export { isOfOtherPage } from "./other-page.ts";
export {
  BodyBytes,
  bodyTooLarge,
  GrowingBytes,
  smallBody,
  type BodyBudget,
  type BodyPlace,
  type BodyReader,
} from "./body.ts";
export { ByteBudget } from "./byte-budget.ts";
export { RunGivenUp, ServerIsStopping } from "./stopping.ts";

// Agents.
export type * from "./extension.ts";
export type * from "./extension-hooks.ts";
export type * from "./extension-methods.ts";
export type * from "./extension-rows.ts";
export type * from "./extension-values.ts";
export type * from "./agent.ts";
export type * from "./agent-event.ts";
export type * from "./files.ts";
export type * from "./turn.ts";
export * from "./turn-signal.ts";
export { DelegationFailed, MessageRefused } from "./message-refused.ts";
export type * from "./turn-context.ts";
export * from "./authorization.ts";
export type * from "./delegation.ts";
export type * from "./steps.ts";
export { stepBounds } from "./steps.ts";
