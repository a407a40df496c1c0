import { spawn, type ChildProcessWithoutNullStreams } from "node:child_process";
import { mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import { collect } from "../../../../test/secrets.ts";

/** A folder with the built binary under its name: hints use that name if the folder is in PATH. */
const bin = mkdtempSync(join(tmpdir(), "parley-bin-"));
symlinkSync(fileURLToPath(new URL("../../dist/main.js", import.meta.url)), join(bin, "parley"));
process.once("exit", () => rmSync(bin, { recursive: true, force: true }));

/** How the binary is started. */
export const parleyCommand: readonly string[] = [process.execPath, join(bin, "parley")];

export interface Finished {
  /** `undefined` when a signal ended it. */
  readonly code: number | undefined;
  readonly out: string;
  readonly err: string;
}

export interface Running {
  readonly child: ChildProcessWithoutNullStreams;
  readonly done: Promise<Finished>;
  /** Resolves once standard output or standard error holds a match; rejects when the process ends without one. */
  until(stream: "out" | "err", pattern: RegExp): Promise<RegExpExecArray>;
}

export interface ParleyOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  readonly stdin?: string;
}

/** A folder that does not exist. */
const noConfig = join(tmpdir(), "parley-no-config");

/** Environment of the tests without what would change how the program behaves. */
function cleanEnv(): NodeJS.ProcessEnv {
  const {
    NO_COLOR: _,
    FORCE_COLOR: __,
    NODE_OPTIONS: ___,
    PARLEY_TOKEN: ____,
    PARLEY_OPERATOR_TOKEN: _______,
    PARLEY_TOKENS: _____,
    // The tests may have been started by a package manager.
    npm_config_user_agent: ______,
    ...rest
  } = process.env;
  // No logins of the person who runs the tests.
  return {
    ...rest,
    PATH: `${bin}${delimiter}${rest["PATH"] ?? ""}`,
    XDG_CONFIG_HOME: noConfig,
    PARLEY_KEYCHAIN: "off",
  };
}

/** Starts the real binary in a separate process. */
export function start(args: readonly string[], options: ParleyOptions = {}): Running {
  const [command = "", ...words] = parleyCommand;
  const child = spawn(command, [...words, ...args], {
    env: { ...cleanEnv(), ...options.env },
    ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
  });
  const text = { out: "", err: "" };
  const waiters = new Set<() => void>();
  const take = (stream: "out" | "err") => (chunk: string) => {
    text[stream] += chunk;
    if (stream === "err") collect(chunk);
    for (const wake of waiters) wake();
  };
  child.stdout.setEncoding("utf8").on("data", take("out"));
  child.stderr.setEncoding("utf8").on("data", take("err"));
  child.stdin.on("error", () => {});
  child.stdin.end(options.stdin ?? "");
  const done = new Promise<Finished>((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code) => resolve({ code: code ?? undefined, ...text }));
  });
  return {
    child,
    done,
    until: (stream, pattern) =>
      new Promise((resolve, reject) => {
        const look = (): boolean => {
          const found = pattern.exec(text[stream]);
          if (found === null) return false;
          waiters.delete(look);
          resolve(found);
          return true;
        };
        if (look()) return;
        waiters.add(look);
        const lost = ({ code, out, err }: Finished): void =>
          reject(new Error(`ended with ${code} before ${String(pattern)}:\n${out}\n${err}`));
        void done.then((end) => look() || lost(end), reject);
      }),
  };
}

/** Runs the real binary to its end. */
export function parley(args: readonly string[], options?: ParleyOptions): Promise<Finished> {
  return start(args, options).done;
}
