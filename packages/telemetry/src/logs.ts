import { context, isSpanContextValid, trace, type DiagLogger } from "@opentelemetry/api";
import type { LogFields, Logger } from "@parley/a2a/internal/base/index";
import { scope } from "./names.ts";

/** A record of a log, as `@opentelemetry/api-logs` describes it. */
export interface LogRecord {
  /** 5 debug, 9 info, 13 warn, 17 error. */
  readonly severityNumber: number;
  /** `INFO`. */
  readonly severityText: string;
  /** The message. */
  readonly body: string;
  /** The fields of the line. Those that are objects are texts. */
  readonly attributes: Record<string, string | number | boolean>;
}

/** Where records go: a `LoggerProvider` of `@opentelemetry/api-logs` fits. */
export interface LogsProvider {
  /** The logger of a scope. */
  getLogger(name: string): {
    /** Takes a record. */
    emit(record: LogRecord): void;
  };
}

const severities = { debug: 5, info: 9, warn: 13, error: 17 } as const;
type Level = keyof typeof severities;

/**
 * A logger whose lines name the span that is active: `trace_id`, `span_id` and `trace_flags`, as Loki, Datadog and others join logs with
 * traces. With a `loggerProvider` each line is also a record of OpenTelemetry.
 *
 * @param logger - Writes the lines.
 *
 * @example
 * ```ts
 * const logger = tracedLogger(standardLogger());
 * await serve(agent, { logger, observer: telemetry() });
 * ```
 */
export function tracedLogger(
  logger: Logger,
  { loggerProvider }: { readonly loggerProvider?: LogsProvider } = {},
): Logger {
  const logs = loggerProvider?.getLogger(scope);
  const write =
    (level: Level) =>
    (message: string, fields?: LogFields): void => {
      const span = trace.getSpanContext(context.active());
      const ids =
        span !== undefined && isSpanContextValid(span)
          ? { trace_id: span.traceId, span_id: span.spanId, trace_flags: span.traceFlags.toString(16).padStart(2, "0") }
          : undefined;
      logger[level](message, ids === undefined ? fields : { ...ids, ...fields });
      emit(logs, level, message, fields);
    };
  return { debug: write("debug"), info: write("info"), warn: write("warn"), error: write("error") };
}

/** How many different errors of an SDK are logged. */
const maxTold = 20;

/**
 * A logger for what OpenTelemetry says of itself, such as that a collector does not answer. An SDK repeats that with each export, and says nothing
 * where it has no logger. Each error and warning is logged once, and at most 20 of them.
 *
 * @example
 * ```ts
 * import { diag, DiagLogLevel } from "@opentelemetry/api";
 *
 * diag.setLogger(diagLogger(standardLogger()), DiagLogLevel.WARN);
 * ```
 */
export function diagLogger(logger: Logger): DiagLogger {
  const told = new Set<string>();
  const once =
    (level: "error" | "warn") =>
    (message: string, ...details: unknown[]): void => {
      // The same error has other numbers each time.
      const key = message.slice(0, 200).replaceAll(/\d+/g, "0");
      if (told.size >= maxTold || told.has(key)) return;
      told.add(key);
      const cause = [message, ...details].map((each) => (typeof each === "string" ? each : textOf(each))).join(" ");
      logger[level]("OpenTelemetry reported a problem; further ones like it are not logged", { cause });
    };
  const nothing = (): void => {};
  return { error: once("error"), warn: once("warn"), info: nothing, debug: nothing, verbose: nothing };
}

function emit(
  logs: ReturnType<LogsProvider["getLogger"]> | undefined,
  level: Level,
  body: string,
  fields: LogFields = {},
): void {
  if (logs === undefined) return;
  const attributes = Object.fromEntries(Object.entries(fields).flatMap(([name, value]) => attributesOf(name, value)));
  try {
    logs.emit({ severityNumber: severities[level], severityText: level.toUpperCase(), body, attributes });
  } catch {
    // The line itself was written. An exporter that fails must not fail what is logged.
  }
}

function attributesOf(name: string, value: unknown): readonly (readonly [string, string | number | boolean])[] {
  if (value === undefined || value === null) return [];
  if (value instanceof Error) {
    return [
      ["exception.type", value.name],
      ["exception.message", value.message],
      ...(value.stack === undefined ? [] : [["exception.stacktrace", value.stack] as const]),
    ];
  }
  if (typeof value === "string" || typeof value === "number" || typeof value === "boolean") return [[name, value]];
  return [[name, textOf(value)]];
}

function textOf(value: unknown): string {
  try {
    return JSON.stringify(value) ?? String(value);
  } catch {
    return String(value);
  }
}
