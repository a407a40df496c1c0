/* Ends the SDK's process with the server. An orphaned process would call models and tools in a turn that another process has resumed. */

interface SpawnOptions {
  readonly command: string;
  readonly args: readonly string[];
  readonly cwd?: string;
  readonly env: object;
}

interface Child {
  readonly stderr?: { on(event: "data", listener: (data: unknown) => void): unknown } | null;
}

interface Spawner {
  spawn(command: string, args: readonly string[], options: object): Child;
}

interface Host {
  readonly execPath: string;
  getBuiltinModule?(id: string): Spawner | undefined;
}

/** Starts the program, and kills it when the channel to its parent closes, however the parent died. */
const keeper = `
const { spawn } = require("node:child_process");
const child = spawn(process.argv[1], process.argv.slice(2), { stdio: "inherit" });
for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"]) process.on(signal, () => child.kill(signal));
process.on("disconnect", () => child.kill("SIGKILL"));
child.on("error", (error) => { console.error(error.message); process.exit(1); });
child.on("exit", (code, signal) => {
  if (signal === null) process.exit(code ?? 1);
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
});
`;

/** The option `spawnClaudeCodeProcess` of the SDK. `said` gets the program's standard error. */
export function spawnKept(options: SpawnOptions, said: (text: string) => void): Child {
  const { process } = globalThis as { process?: Host };
  const spawner = process?.getBuiltinModule?.("node:child_process");
  if (process === undefined || spawner === undefined)
    throw new Error("@parley/frameworks/claude needs Node 20.19 or newer");
  const { command, args, cwd, env } = options;
  const stdio = ["pipe", "pipe", "pipe", "ipc"];
  const child = spawner.spawn(process.execPath, ["-e", keeper, command, ...args], { cwd, env, stdio });
  child.stderr?.on("data", (data) => said(String(data)));
  return child;
}
