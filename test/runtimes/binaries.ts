import { execFile } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";

const folder = import.meta.dirname;
const run = promisify(execFile);

/** Finds the program of a runtime, which npm has installed from the package for this machine in the runtime's scope. */
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
