import type { LogFields, Logger } from "@parley/a2a/internal/base/index";

/** One line of the log of a server under test. */
export interface LogLine {
  /** How bad it is. */
  readonly level: "debug" | "info" | "warn" | "error";
  /** What happened. */
  readonly message: string;
  /** Its details. `cause` is the error, if there is one. */
  readonly fields: LogFields;
}

/** A logger that keeps its lines in `lines`, and passes them on to `next`. */
export function recordingLogger(lines: LogLine[], next: Logger | undefined): Logger {
  const at =
    (level: LogLine["level"]) =>
    (message: string, fields: LogFields = {}): void => {
      lines.push({ level, message, fields });
      next?.[level](message, fields);
    };
  return { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
}

/** The warnings and errors as texts, with the stacks of their causes. */
export function problemsIn(lines: readonly LogLine[]): readonly string[] {
  return lines.filter(({ level }) => level === "warn" || level === "error").map(toText);
}

function toText({ level, message, fields }: LogLine): string {
  const { cause, ...rest } = fields;
  const details = Object.entries(rest)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `\n  ${name}: ${typeof value === "string" ? value : JSON.stringify(value)}`);
  return `${level}: ${message}${details.join("")}${causes(cause)}`;
}

/** An error with what caused it. */
function causes(cause: unknown): string {
  const texts: string[] = [];
  for (let each = cause; each instanceof Error && texts.length < 10; each = each.cause)
    texts.push(`\n${each.stack ?? `${each.name}: ${each.message}`}`);
  if (cause !== undefined && texts.length === 0) texts.push(`\n${JSON.stringify(cause)}`);
  return texts.join("");
}
