// Runs programs, and keeps what they print; runs scripts to their exit codes.

import { execFile } from "node:child_process";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { root } from "./ready.mjs";

/** @typedef {{ ok: boolean, output: string }} Result */

/**
 * @param {string} file @param {readonly string[]} args @param {string} [cwd]
 * @returns {Promise<Result>} `output` is standard output, then standard error. Never rejects.
 */
export function exec(file, args, cwd = root) {
  const windows = process.platform === "win32";
  return new Promise((done) => {
    execFile(file, args, { cwd, shell: windows, maxBuffer: 64 << 20 }, (error, stdout, stderr) => {
      const unstarted = error !== null && typeof error.code === "string" ? `${error.message}\n` : "";
      done({ ok: error === null, output: unstarted + stdout + stderr });
    });
  });
}

/** Runs a tool of `node_modules/.bin`. @param {string} name @param {readonly string[]} args @param {string} [cwd] */
export function tool(name, args, cwd) {
  return exec(join(root, "node_modules", ".bin", name), args, cwd);
}

/** @param {string} failure What to say if it fails. @param {Promise<Result>} running */
export async function must(failure, running) {
  const { ok, output } = await running;
  if (!ok) throw new Error(`${failure}:\n${output.trimEnd()}`);
}

/**
 * Runs a script, and prints why it fails. Exit codes: 0 done, 1 failed, 2 bad usage.
 * @param {string} usage @param {import("node:util").ParseArgsConfig["options"]} options Apart from --help.
 * @param {(values: Readonly<Record<string, unknown>>) => Promise<unknown>} run
 */
export async function script(usage, options, run) {
  try {
    const { values } = parseArgs({ options: { ...options, help: { type: "boolean", short: "h" } } });
    if (values["help"] === true) console.log(usage);
    else await run(values);
  } catch (error) {
    const isUsage = error instanceof TypeError && "code" in error && String(error.code).startsWith("ERR_PARSE_ARGS");
    const message = error instanceof Error ? error.message : String(error);
    console.error(isUsage ? `${message}\n\n${usage}` : message);
    process.exitCode = isUsage ? 2 : 1;
  }
}
