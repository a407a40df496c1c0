import { execFile, spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";
import { pack, publishedPackages } from "../../scripts/tarballs.mjs";
import { startRegistry, type Registry } from "./registry.ts";

const exec = promisify(execFile);

/** The tarballs of all packages in a registry of the test, and a shell that installs from there. */
export interface Published {
  readonly registry: Registry;
  /** An empty folder. Programs in its folder `bin` are found by the shell. */
  readonly home: string;
  /** What a line prints in a shell, as a user types it. */
  shell(line: string, cwd: string): Promise<string>;
  /** Starts a line that serves, and resolves to what it has printed once a match is there. */
  serving(line: string, cwd: string, pattern: RegExp): Promise<string>;
  /** Ends what serves. */
  kill(): Promise<void>;
  close(): Promise<void>;
}

/** Packs and publishes all packages. All other packages come from the registry that this machine has. */
export async function publishAll(): Promise<Published> {
  const registry = await startRegistry();
  const home = await mkdtemp(join(tmpdir(), "parley-tarballs-"));
  const children: ChildProcess[] = [];
  const environment = (): NodeJS.ProcessEnv => {
    const { NO_COLOR: _, FORCE_COLOR: __, NODE_OPTIONS: ___, ...rest } = process.env;
    const bin = join(home, "bin");
    // No answer to a question of npx: what is not installed is an error.
    return { ...rest, ...registry.env, PATH: `${bin}${delimiter}${rest["PATH"]}`, npm_config_yes: "false" };
  };
  await Promise.all(
    publishedPackages().map(async (one) => {
      const { file } = await pack(one, home);
      const args = ["publish", file, "--provenance=false", "--loglevel=error"];
      await exec("npm", args, { cwd: home, env: { ...process.env, ...registry.env } });
    }),
  );

  async function kill(): Promise<void> {
    for (const child of children.splice(0)) {
      if (child.exitCode !== null || child.signalCode !== null) continue;
      const gone = once(child, "exit");
      // With what it has started: npx runs the program in a process of its own.
      process.kill(-(child.pid as number), "SIGKILL");
      await gone;
    }
  }

  return {
    registry,
    home,
    kill,
    async shell(line, cwd) {
      const { stdout } = await exec("sh", ["-ec", line], { cwd, env: environment(), maxBuffer: 64 << 20 });
      return stdout;
    },
    serving(line, cwd, pattern) {
      const child = spawn("sh", ["-c", `exec ${line}`], {
        cwd,
        env: environment(),
        stdio: ["ignore", "pipe", "pipe"],
        detached: true,
      });
      children.push(child);
      let said = "";
      return new Promise((resolve, reject) => {
        const listen = (chunk: Buffer): void => {
          said += chunk.toString();
          const found = pattern.exec(said);
          if (found !== null) resolve(found[1] ?? said);
        };
        child.stdout.on("data", listen);
        child.stderr.on("data", listen);
        child.on("exit", (code) => reject(new Error(`"${line}" ended with ${code}:\n${said}`)));
      });
    },
    async close() {
      await kill();
      await registry.close();
      await rm(home, { recursive: true, force: true });
    },
  };
}
