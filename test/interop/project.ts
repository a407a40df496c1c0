import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { copyFile, mkdir, mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import { reservePort } from "../crash/supervisor.ts";

const root = join(import.meta.dirname, "../..");
/** PARLEY_ROOT: another built checkout, to run the clients with its version. */
const checkout = process.env["PARLEY_ROOT"] ?? root;
/** The command line of that checkout. */
export const command = join(checkout, "packages/cli/dist/main.js");

export interface Project {
  readonly url: string;
  stop(): Promise<void>;
}

/** Makes a project with `parley init`, replaces its agent, and serves it like `npm start`, on a free port. */
export async function startProject(agent: string, options: readonly string[] = []): Promise<Project> {
  // Below node_modules, where the project finds the packages as if they were installed.
  const projects = join(checkout, "node_modules/.cache/parley-projects");
  await mkdir(projects, { recursive: true });
  const folder = await mkdtemp(join(projects, "project-"));
  await promisify(execFile)(process.execPath, [command, "init", folder]);
  await copyFile(agent, join(folder, "agent.ts"));
  const port = await reservePort();
  const child = spawn(process.execPath, [command, "serve", "agent.ts", "--port", `${port}`, ...options], {
    cwd: folder,
    env: { PATH: process.env["PATH"] ?? "", HOME: folder },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const said: string[] = [];
  for (const output of [child.stdout, child.stderr])
    createInterface({ input: output }).on("line", (line) => said.push(line));
  const ended = once(child, "exit");
  const stop = async (): Promise<void> => {
    child.kill("SIGKILL");
    await ended;
    await rm(folder, { recursive: true, force: true });
  };
  const ready = async (): Promise<void> => {
    while (!said.some((line) => line.includes("is ready at"))) {
      const next = await Promise.race([once(child.stdout, "data"), ended.then(() => "ended" as const)]);
      if (next === "ended") throw new Error(`parley serve ended: ${said.join("\n")}`);
    }
  };
  try {
    await ready();
  } catch (error) {
    await rm(folder, { recursive: true, force: true });
    throw error;
  }
  return { url: `http://127.0.0.1:${port}`, stop };
}
