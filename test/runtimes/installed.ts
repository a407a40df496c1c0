import { execFileSync } from "node:child_process";
import { existsSync, statSync } from "node:fs";
import { join } from "node:path";

/*
 * The runtimes come from npm, but not with the workspace: they are large, and only this suite needs them. Their packages would
 * fetch or link the program for this machine in an install script; it lies in a package of its own anyway, so the scripts do
 * not run and it is called where it lies.
 */

/** Installs what the lockfile here names, unless it is there: once, before any test file begins. */
export function setup(): void {
  const folder = import.meta.dirname;
  const done = join(folder, "node_modules", ".package-lock.json");
  const wanted = join(folder, "package-lock.json");
  if (existsSync(done) && statSync(done).mtimeMs >= statSync(wanted).mtimeMs) return;
  const args = ["ci", "--prefix", folder, "--ignore-scripts", "--no-audit", "--no-fund"];
  const npm = process.env["npm_execpath"];
  if (npm?.endsWith("js") === true) execFileSync(process.execPath, [npm, ...args]);
  else execFileSync("npm", args, { shell: process.platform === "win32" });
}
