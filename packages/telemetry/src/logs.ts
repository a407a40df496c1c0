import { context, isSpanContextValid, trace, type DiagLogger } from "@opentelemetry/api";
import type { LogFields, Logger } from "@parley/a2a/internal/base/index";
import { scope } from "./names.ts";

/** A record of a log, as `@opentelemetry/api-logs` describes it. */
export interface LogRecord {
  /** 5 debug, 9 info, 13 warn, 17 error. */
  readonly severityNumber: number;
  /** Such as `INFO`. */
  readonly severityText: string;
  /** The message. */
  readonly body: string;
  /** The fields of the line. Objects become strings. */
  readonly attributes: Record<string, string | number | boolean>;
}

/** Receives records. Compatible with the `LoggerProvider` of `@opentelemetry/api-logs`. */
export interface LogsProvider {
  /** The logger of a scope. */
  getLogger(name: string): {
    /** Exports a record. */
    emit(record: LogRecord): void;
  };
}

const severities = { debug: 5, info: 9, warn: 13, error: 17 } as const;
type Level = keyof typeof severities;

/**
 * A logger that adds the active span to each line (`trace_id`, `span_id`, `trace_flags`), so that tools such as Loki and Datadog can join
 * logs with traces. With a `loggerProvider`, it also exports each line as an OpenTelemetry record.
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

/** Maximum distinct problems to log. */
const maxTold = 20;

/**
 * A logger for OpenTelemetry's own problems, such as an unreachable collector. Without a logger an SDK reports nothing; with one it repeats a
 * problem for each export. This logger logs each error and warning once, and at most 20 of them.
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
      // Repetitions of a problem differ only in numbers, such as ports and times.
      const key = message.slice(0, 200).replaceAll(/\d+/g, "0");
      if (told.size >= maxTold || told.has(key)) return;
      told.add(key);
      const cause = [message, ...details].map((each) => (typeof each === "string" ? each : textOf(each))).join(" ");
      logger[level]("OpenTelemetry reported a problem; not logging repetitions", { cause });
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
    // The logger has already written the line. A failing exporter must not break the caller.
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
