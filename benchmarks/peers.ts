import { execFile, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { firstLine } from "./lines.ts";

/** A server of another SDK. */
export interface Peer {
  readonly jsonRpc: string;
  readonly rest: string;
  stop(): Promise<void>;
  kill(): Promise<void>;
}

const run = promisify(execFile);
const root = fileURLToPath(new URL("../../", import.meta.url));
const folder = join(root, "benchmarks/peers/python");

/** Creates the Python environment next to the npm modules, where it stays until its inputs change. */
async function python(): Promise<string> {
  const requirements = join(folder, "requirements.txt");
  const { stdout: version } = await run("python3", ["--version"]);
  const digest = createHash("sha256")
    .update(version)
    .update(await readFile(requirements))
    .digest("hex");
  const environment = join(root, "node_modules/.cache/parley-bench", `python-${digest.slice(0, 16)}`);
  const program = join(environment, "bin/python");
  const done = join(environment, "done");
  if (existsSync(done)) return program;
  await rm(environment, { recursive: true, force: true });
  await run("python3", ["-m", "venv", environment]);
  const install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement", requirements];
  await run(program, install, { timeout: 240_000 });
  await writeFile(done, version);
  return program;
}

/** Creates the environment of nodes with the Python SDK, and returns a function that starts one. Rejects without Python. */
export async function pythonNodes(database: string): Promise<() => Promise<Peer>> {
  const program = await python();
  return async () => {
    const child = spawn(program, [join(folder, "node.py"), database], {
      stdio: ["pipe", "pipe", "inherit"],
      env: { ...process.env, PYTHONDONTWRITEBYTECODE: "1" },
    });
    const { said, stop, kill } = await firstLine<{ readonly url: string }>(child, "The Python SDK");
    return { jsonRpc: said.url, rest: said.url, stop, kill };
  };
}
