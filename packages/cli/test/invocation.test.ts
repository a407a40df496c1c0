import { execFile } from "node:child_process";
import { chmod, mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

/** Users start the program in many ways. The commands that it suggests begin as the user's command did. */

const root = fileURLToPath(new URL("../../..", import.meta.url));
const run = promisify(execFile);
const invocation = pathToFileURL(join(root, "packages/cli/dist/invocation.js")).href;
const pnpm = join(dirname(createRequire(import.meta.url).resolve("pnpm")), "bin/pnpm.cjs");

/** In place of the program: it prints the command to type. */
const program = `#!/usr/bin/env node
import { programFor } from ${JSON.stringify(invocation)};
const { env, argv, execArgv, platform } = process;
console.log(programFor({ env, script: argv[1], execArgv, platform, cwd: process.cwd() }), argv.slice(2).join(" "));
`;

let folder = "";
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "parley-invocation-"));
  const bin = join(folder, "node_modules/.bin");
  const main = join(folder, "node_modules/@parley/cli/dist/main.js");
  await mkdir(bin, { recursive: true });
  await mkdir(dirname(main), { recursive: true });
  await writeFile(main, program);
  await chmod(main, 0o755);
  await writeFile(
    join(folder, "node_modules/@parley/cli/package.json"),
    '{ "name": "@parley/cli", "version": "1.0.0", "type": "module" }',
  );
  await symlink("../@parley/cli/dist/main.js", join(bin, "parley"));
  await mkdir(join(folder, "scripts"));
  await writeFile(join(folder, "scripts/parley.mjs"), program);
  const scripts = { parley: "parley", clone: "node scripts/parley.mjs", ask: "parley send http://localhost:4000" };
  await writeFile(join(folder, "package.json"), JSON.stringify({ name: "project", private: true, scripts }));
});
afterAll(() => rm(folder, { recursive: true }));

/** The output of a command line in a shell. */
async function typed(command: string): Promise<string> {
  const { npm_config_user_agent: _, npm_lifecycle_event: __, npm_package_json: ___, ...rest } = process.env;
  // As in a shell that no package manager has started.
  const path = (rest["PATH"] ?? "").split(":").filter((entry) => !entry.includes("node_modules"));
  const env = { ...rest, PATH: path.join(":"), npm_config_update_notifier: "false" };
  const { stdout } = await run("sh", ["-c", command], { cwd: folder, env });
  return stdout.trim();
}

describe("the command that hints name", () => {
  test.each([
    ["npm run --silent parley -- a", "npm run --silent parley --", "a"],
    ["npm run --silent clone -- a", "npm run --silent clone --", "a"],
    ["npm run --silent ask -- a", "npx parley", "send http://localhost:4000 a"],
    ["npx parley a", "npx parley", "a"],
    [`node ${pnpm} exec parley a`, "pnpm exec parley", "a"],
    [`node ${pnpm} --silent parley a`, "pnpm --silent parley", "a"],
    ["node_modules/.bin/parley a", "./node_modules/.bin/parley", "a"],
    ["PATH=$PWD/node_modules/.bin:$PATH; parley a", "parley", "a"],
    ["node scripts/parley.mjs a", "node scripts/parley.mjs", "a"],
    [`node --import ${import.meta.resolve("tsx")} scripts/parley.mjs a`, "npx tsx scripts/parley.mjs", "a"],
  ])("after %s is %s", async (command, program, words) => {
    expect(await typed(command)).toBe(`${program} ${words}`);
  });
});
