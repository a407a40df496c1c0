// Runs programs, and keeps what they print.

import { execFile } from "node:child_process";
import { join } from "node:path";
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
