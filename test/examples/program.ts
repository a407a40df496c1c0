import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { join, relative } from "node:path";
import { createInterface } from "node:readline";
import { build } from "esbuild";
import { fileURLToPath } from "node:url";
import { reservePort } from "../crash/supervisor.ts";
import { diskFolder } from "../temporary.ts";

/** The folder names of the examples. */
export const examples = [
  "token-streamer",
  "long-running",
  "reimbursement",
  "files",
  "travel-planner",
  "ai-sdk",
] as const;
export type Example = (typeof examples)[number];

const root = fileURLToPath(new URL("../..", import.meta.url));

/** Returns the path of the program that `npm start -- NAME` runs. */
export const ours = (name: Example | "mastra"): string => join(root, "examples", name, "main.ts");
/** Returns the path of the same agent's program with the official SDK, or with Mastra's own A2A support. */
export const official = (name: Example | "mastra"): string => join(root, "test", "examples", "official", `${name}.ts`);

/** Compiles a program to JavaScript, because Node starts TypeScript far more slowly. The output is in a folder from which it finds its packages. */
async function compiled(source: string): Promise<string> {
  const outfile = join(
    root,
    "node_modules",
    ".parley-examples",
    `${relative(root, source).replaceAll(/\W+/g, "-")}.mjs`,
  );
  await build({ entryPoints: [source], outfile, bundle: true, packages: "external", format: "esm", platform: "node" });
  return outfile;
}

/** A program that serves an agent. A test can restart the program in the same folder and on the same port. */
export class Program {
  readonly url: string;
  /** The lines on the program's standard error. */
  readonly complaints: string[] = [];
  readonly #script: string;
  readonly #folder: string;
  readonly #port: number;
  readonly #environment: Readonly<Record<string, string>>;
  #child: ChildProcess | undefined;

  private constructor(script: string, folder: string, port: number, environment: Readonly<Record<string, string>>) {
    this.#environment = environment;
    this.#script = script;
    this.#folder = folder;
    this.#port = port;
    this.url = `http://127.0.0.1:${port}`;
  }

  /** Starts a program in its own folder, which contains the program's task file. */
  static async in(source: string, environment: Readonly<Record<string, string>> = {}): Promise<Program> {
    const folder = await mkdtemp(join(diskFolder(), "parley-example-"));
    const program = new Program(await compiled(source), folder, await reservePort(), environment);
    await program.start();
    return program;
  }

  /** Starts the program. Resolves once it listens. `environment`: only for this start. */
  async start(environment: Readonly<Record<string, string>> = {}): Promise<void> {
    const child = spawn(process.execPath, [this.#script], {
      cwd: this.#folder,
      env: { ...process.env, PORT: String(this.#port), PAUSE: "5", ...this.#environment, ...environment },
      stdio: ["ignore", "pipe", "pipe"],
    });
    this.#child = child;
    createInterface({ input: child.stderr }).on("line", (line) => this.complaints.push(line));
    const ended = once(child, "close").then(() => {
      throw new Error(`${this.#script} ended: ${this.complaints.join("\n")}`);
    });
    ended.catch(() => undefined);
    const lines = createInterface({ input: child.stdout });
    await Promise.race([once(lines, "line"), ended]);
  }

  /** Kills the program with SIGKILL, so that its process cannot react. */
  async kill(): Promise<void> {
    const child = this.#child;
    this.#child = undefined;
    if (child === undefined) return;
    const gone = once(child, "exit");
    child.kill("SIGKILL");
    await gone;
  }

  async end(): Promise<void> {
    await this.kill();
    await rm(this.#folder, { recursive: true });
  }
}
