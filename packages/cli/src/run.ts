import { CommanderError } from "commander";
import { UsageError } from "./errors.ts";
import { explain } from "./explain.ts";
import type { Io } from "./io.ts";
import { createProgram } from "./program.ts";

/** Runs one command line, given without the name of the program; gives its exit code. Never throws. */
export async function run(argv: readonly string[], io: Io): Promise<number> {
  let code = 0;
  /** What the error of a command is told with. */
  let told: { url?: string; verbose?: boolean } = {};
  const program = createProgram(io, (value) => (code = value)).hook("preAction", (_, command) => {
    const [target] = command.args;
    told = {
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
    // Commander has said what is wrong; help and the version also come this way, as a success.
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
    io.stderr.write(`parley: ${explain(error, told)}\n`);
    return error instanceof UsageError ? 2 : 1;
  }
}
