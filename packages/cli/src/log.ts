import type { Logger } from "@parley/a2a";
import { explain } from "./explain.ts";
import type { Io } from "./io.ts";
import { styleFor } from "./output/style.ts";
import { line } from "./output/text.ts";

/** Log lines on standard error: warnings and errors, with `--verbose` all of them and the stacks of their causes. */
export function logTo(io: Io, verbose: boolean): Logger {
  const style = styleFor(io.stderr, io.env);
  const write =
    (label: string): Logger["info"] =>
    (message, { cause, ...fields } = {}) => {
      const rest = Object.entries(fields).map(
        ([name, value]) => ` ${name}=${typeof value === "string" ? value : (JSON.stringify(value) ?? "")}`,
      );
      const why = cause === undefined ? "" : ` cause=${explain(cause, { verbose })}`;
      io.stderr.write(`${label} ${line(`${message}${rest.join("")}`)}${why}\n`);
    };
  return {
    debug: verbose ? write(style("dim", "debug")) : () => {},
    info: verbose ? write(style("dim", "info")) : () => {},
    warn: write(style("yellow", "warn")),
    error: write(style("red", "error")),
  };
}
