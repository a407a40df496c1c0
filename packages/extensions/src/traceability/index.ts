/**
 * The Traceability extension: agents say which steps they have taken for a response.
 * @packageDocumentation
 */

export {
  traceability,
  traceabilityExtension,
  traceabilityUri,
  type TraceabilityExtension,
  type TraceabilityOptions,
  type TracePlace,
  type TraceReads,
} from "./traceability.ts";
export { traceStep, type OpenStep, type StepInit, type StepResult, type Trace } from "./recorder.ts";
export { readTrace, type CallType, type ResponseTrace, type TraceStep, writeTrace, type TraceShape } from "./trace.ts";
