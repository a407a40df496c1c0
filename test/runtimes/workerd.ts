import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { build } from "esbuild";
import { reservePort } from "../ports.ts";
import { findProgram } from "./binaries.ts";

/** Runs Workers in workerd, the runtime of Cloudflare Workers, with the data of Durable Objects in a folder. */

const here = import.meta.dirname;

/** A worker with its own folder and address. Its processes run in sequence, and share the data. */
export class WorkerdWorker {
  readonly #folder: string;
  readonly #program: string;
  readonly url: string;
  #process: ChildProcess | undefined;
  /** The standard error of all its processes. */
  errors = "";

  private constructor(folder: string, program: string, url: string) {
    this.#folder = folder;
    this.#program = program;
    this.url = url;
  }

  /**
   * Bundles a file of this folder. `classes`: the file's Durable Objects, each bound under its class name in capitals. The worker reads its
   * own address from `PUBLIC_URL`.
   */
  static async create(
    file: string,
    classes: readonly string[],
    env: Readonly<Record<string, string>> = {},
  ): Promise<WorkerdWorker> {
    const folder = await mkdtemp(join(tmpdir(), "parley-workerd-"));
    const { file: program } = await findProgram("@cloudflare", "bin", "workerd");
    const url = `http://127.0.0.1:${await reservePort()}`;
    await mkdir(join(folder, "data"));
    await bundle(file, join(folder, "worker.js"));
    await writeFile(join(folder, "worker.capnp"), configOf(new URL(url).host, classes, { ...env, PUBLIC_URL: url }));
    return new WorkerdWorker(folder, program, url);
  }

  /** Starts a process of the worker. */
  async start(): Promise<void> {
    const args = ["serve", join(this.#folder, "worker.capnp"), "--control-fd=3"];
    const child = spawn(this.#program, [...args, `--directory-path=data=${join(this.#folder, "data")}`], {
      env: { PATH: process.env["PATH"] ?? "", HOME: tmpdir() },
      stdio: ["ignore", "pipe", "pipe", "pipe"],
    });
    this.#process = child;
    child.stderr?.on("data", (chunk: Buffer) => (this.errors += chunk.toString()));
    child.stdout?.resume();
    let text = "";
    await new Promise<void>((resolve, reject) => {
      child.stdio[3]?.on("data", (chunk: Buffer) => {
        text += chunk.toString();
        if (text.includes("\n")) resolve();
      });
      child.on("error", reject);
      child.on("exit", (code) => reject(new Error(`workerd ended with ${code}: ${this.errors}`)));
    });
  }

  /** Kills the process, to simulate a crash. */
  async kill(): Promise<void> {
    const child = this.#process;
    this.#process = undefined;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    child.kill("SIGKILL");
    await once(child, "exit");
  }

  async remove(): Promise<void> {
    await this.kill();
    await rm(this.#folder, { recursive: true });
  }
}

/** Bundles a file like the build tool for Workers. Fails if any module imports a Node module. */
async function bundle(file: string, outfile: string): Promise<void> {
  await build({
    entryPoints: [resolve(here, file)],
    outfile,
    bundle: true,
    format: "esm",
    platform: "neutral",
    // The build tool for Workers also reads these fields of a package.
    mainFields: ["browser", "module", "main"],
    conditions: ["@parley/source"],
    external: ["cloudflare:workers"],
    logLevel: "error",
  });
}

function configOf(host: string, classes: readonly string[], env: Readonly<Record<string, string>>): string {
  const namespaces = classes.map((name) => `(className = "${name}", uniqueKey = "${name}", enableSql = true)`);
  const bindings = [
    ...classes.map((name) => `(name = "${name.toUpperCase()}", durableObjectNamespace = "${name}")`),
    ...Object.entries(env).map(([name, value]) => `(name = ${JSON.stringify(name)}, text = ${JSON.stringify(value)})`),
  ];
  return `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    (name = "main", worker = .worker),
    (name = "internet", network = (allow = ["private", "local"])),
    (name = "data", disk = (writable = true)),
  ],
  sockets = [(name = "http", address = "${host}", http = (), service = "main")],
);
const worker :Workerd.Worker = (
  modules = [(name = "worker.js", esModule = embed "worker.js")],
  compatibilityDate = "2026-11-01",
  durableObjectNamespaces = [${namespaces.join(", ")}],
  durableObjectStorage = (localDisk = "data"),
  bindings = [${bindings.join(", ")}],
);
`;
}
