import { run } from "../../src/program.ts";
import { recordedIo } from "./io.ts";
import type { Finished, ParleyOptions } from "./parley.ts";

/**
 * Runs a command line in this process, for tests of a command's work: starting the binary takes far longer than most
 * commands do. Tests of the process itself (signals, pipes, how it ends) start the binary, see parley.ts.
 */
export async function parleyHere(args: readonly string[], options: ParleyOptions = {}): Promise<Finished> {
  const { env = {}, cwd = process.cwd(), stdin = "" } = options;
  // No logins of the person who runs the tests.
  const { io, out, err } = recordedIo({
    env: { XDG_CONFIG_HOME: "/nowhere", PARLEY_KEYCHAIN: "off", ...env },
    cwd,
    stdin,
  });
  // Without a terminal, the lines of standard input are the answers, and no question is shown.
  const answers = stdin === "" ? [] : stdin.replace(/\n$/, "").split("\n");
  const code = await run(args, { ...io, ask: async () => answers.shift() });
  return { code, out: out(), err: err() };
}
