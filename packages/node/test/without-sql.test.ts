import { execFile } from "node:child_process";
import { cp, mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, it } from "vitest";

const exec = promisify(execFile);
const root = fileURLToPath(new URL("../../..", import.meta.url));

const program = `
import { defineAgent, memoryStore, serve } from "@parley/node";

const agent = defineAgent({
  name: "Echo", description: "Says it again.", version: "1.0.0", skills: [],
  onMessage: (turn) => turn.reply(turn.text),
});
const given = { memory: { store: memoryStore() }, off: { logger: false }, errors: { logLevel: "error" } }[process.argv[2]];
const server = await serve(agent, { port: 0, ...given });
await server.close({ grace: 0 });
`;

let project = "";
// A folder with installed packages, without @parley/sql.
beforeAll(async () => {
  const tsc = join(root, "node_modules", "typescript", "bin", "tsc");
  await exec(process.execPath, [tsc, "-b", "packages/node"], { cwd: root });
  project = await mkdtemp(join(tmpdir(), "parley-without-sql-"));
  const modules = join(project, "node_modules");
  for (const name of ["a2a", "server", "node"]) {
    const [from, to] = [join(root, "packages", name), join(modules, "@parley", name)];
    await mkdir(to, { recursive: true });
    await cp(join(from, "package.json"), join(to, "package.json"));
    await cp(join(from, "dist"), join(to, "dist"), { recursive: true });
  }
  await writeFile(join(project, "package.json"), '{ "type": "module" }');
  await writeFile(join(project, "main.js"), program);
});
afterAll(() => rm(project, { recursive: true, force: true }));

async function stderrOf(given: string): Promise<string> {
  const { stderr } = await exec(process.execPath, ["main.js", given], { cwd: project });
  return stderr;
}

it("without @parley/sql a server warns once that its tasks are not durable, and how to change that", async () => {
  const [line = "", ...others] = (await stderrOf("nothing")).trimEnd().split("\n");
  expect(others).toEqual([]);
  expect(JSON.parse(line)).toMatchObject({
    level: "warn",
    message: expect.stringMatching(
      /in memory and end with this process: install @parley\/sql .* `store: memoryStore\(\)`/,
    ),
  });
  expect(await readdir(project)).not.toContain(".parley");
});

it.each(["off", "errors"])("warns by a warning of the process where the log would not show it: %s", async (given) => {
  const said = await stderrOf(given);
  expect(said).toContain("[PARLEY_MEMORY_STORE] Warning: Tasks are kept in memory");
  expect(said.match(/Tasks are kept in memory/g)).toHaveLength(1);
});

it("does not warn where a store in memory was passed", async () => {
  expect(await stderrOf("memory")).toBe("");
});
