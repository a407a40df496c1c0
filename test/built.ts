import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { TestProject } from "vitest/node";

const root = fileURLToPath(new URL("..", import.meta.url));
const tsc = join(root, "node_modules/typescript/bin/tsc");

/**
 * Updates the build before the tests run, and again before each run in watch mode. Programs and threads that tests start run the built files,
 * because compiling the sources in each of them takes longer than most tests.
 */
export function setup(project: TestProject): void {
  build();
  project.onTestsRerun(async () => build());
}

/** Takes half a second if everything is up to date. Type errors are printed, but do not stop the tests. */
function build(): void {
  const { status, stdout } = spawnSync(process.execPath, [tsc, "-b", "tsconfig.build.json"], {
    cwd: root,
    encoding: "utf8",
  });
  if (status !== 0) process.stderr.write(`tsc -b:\n${stdout}\n`);
}
