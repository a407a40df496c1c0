import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { TestProject } from "vitest/node";

const root = fileURLToPath(new URL("..", import.meta.url));
const tsc = join(root, "node_modules/typescript/bin/tsc");

/**
 * Programs and threads that tests start run what is built: to compile the sources in each of them takes longer than most
 * tests do. So the build is updated before the tests run, and again before they do so in watch mode.
 */
export function setup(project: TestProject): void {
  build();
  project.onTestsRerun(async () => build());
}

/** With nothing to do it takes half a second. Type errors are printed, and stop no test. */
function build(): void {
  const { status, stdout } = spawnSync(process.execPath, [tsc, "-b", "tsconfig.build.json"], {
    cwd: root,
    encoding: "utf8",
  });
  if (status !== 0) process.stderr.write(`tsc -b:\n${stdout}\n`);
}
