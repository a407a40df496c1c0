import { execFile } from "node:child_process";
import { existsSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";

/**
 * The runtimes come from npm, but not with the workspace: they are large, and only this suite needs them. Their
 * packages would fetch or link the program for this machine in an install script; it lies in a package of its own
 * anyway, so the scripts do not run and it is called where it lies.
 */

const folder = import.meta.dirname;
const run = promisify(execFile);

/** Installs what the lockfile here names, unless it is there. */
export async function installRuntimes(): Promise<void> {
  const done = join(folder, "node_modules", ".package-lock.json");
  const wanted = join(folder, "package-lock.json");
  if (existsSync(done) && statSync(done).mtimeMs >= statSync(wanted).mtimeMs) return;
  const args = ["ci", "--prefix", folder, "--ignore-scripts", "--no-audit", "--no-fund"];
  const npm = process.env["npm_execpath"];
  if (npm?.endsWith("js") === true) await run(process.execPath, [npm, ...args]);
  else await run("npm", args, { shell: process.platform === "win32" });
}

/** The program of a runtime: npm installed one of the packages of its scope, the one for this machine. */
export async function findProgram(
  scope: string,
  ...path: readonly string[]
): Promise<{ file: string; version: string }> {
  const packages = join(folder, "node_modules", scope);
  const found = existsSync(packages) ? readdirSync(packages) : [];
  for (const name of found) {
    for (const extension of ["", ".exe"]) {
      const file = join(packages, name, ...path) + extension;
      if (!existsSync(file)) continue;
      const { stdout } = await run(file, ["--version"]);
      return { file, version: stdout.split("\n")[0] ?? "" };
    }
  }
  throw new Error(`${scope} has no program for ${process.platform} on ${process.arch}`);
}
