/**
 * OpenTelemetry for agents and clients: traces, metrics and logs.
 * @packageDocumentation
 */

export { telemetry, type TelemetryOptions } from "./telemetry.ts";
export { observers } from "./observers.ts";
export { diagLogger, tracedLogger, type LogsProvider, type LogRecord } from "./logs.ts";
export type { Redact } from "./traces/content.ts";
