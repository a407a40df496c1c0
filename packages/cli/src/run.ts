import { CommanderError } from "commander";
import { UsageError } from "./errors.ts";
import { explain } from "./explain.ts";
import type { Io } from "./io.ts";
import { createProgram } from "./program.ts";

/** Runs one command line, without the name of the program. Returns the exit code; never throws. */
export async function run(argv: readonly string[], io: Io): Promise<number> {
  let code = 0;
  /** Options for `explain`, known once the command line is parsed. */
  let explained: { url?: string; verbose?: boolean } = {};
  const program = createProgram(io, (value) => (code = value)).hook("preAction", (_, command) => {
    const [target] = command.args;
    explained = {
      ...(target !== undefined && /^https?:/i.test(target) ? { url: target } : {}),
      verbose: command.getOptionValue("verbose") === true,
    };
  });
  if (argv.length === 0) {
    program.outputHelp({ error: true });
    return 2;
  }
  try {
    await program.parseAsync(argv, { from: "user" });
    return code;
  } catch (error) {
    // Commander has printed the mistake. It also throws after the help and the version, with exit code 0.
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
    io.stderr.write(`parley: ${explain(error, explained)}\n`);
    return error instanceof UsageError ? 2 : 1;
  }
}
