import { execFile, spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";
import { inject } from "vitest";

const exec = promisify(execFile);

/** The registry of setup.ts, which has all packages, and a shell that installs from there. */
export interface Published {
  /** Address of the registry. */
  readonly url: string;
  /** Manifest of a version, as it was published; empty if it was not. */
  manifest(name: string, version: string): Promise<Readonly<Record<string, unknown>>>;
  /** An empty folder. Programs in its folder `bin` are found by the shell. */
  readonly home: string;
  /** What a line prints in a shell, as a user types it. */
  shell(line: string, cwd: string): Promise<string>;
  /** Starts a line that serves, and resolves to what it has printed once a match is there. */
  serving(line: string, cwd: string, pattern: RegExp): Promise<string>;
  /** Ends what serves. */
  kill(): Promise<void>;
  /** Ends what serves, and removes the folder. */
  close(): Promise<void>;
}

/** What a test file has of the packages. */
export async function openPublished(): Promise<Published> {
  const { url, env: own } = inject("registry");
  const home = await mkdtemp(join(tmpdir(), "parley-tarballs-"));
  const children: ChildProcess[] = [];
  const environment = (): NodeJS.ProcessEnv => {
    const { NO_COLOR: _, FORCE_COLOR: __, NODE_OPTIONS: ___, ...rest } = process.env;
    const bin = join(home, "bin");
    // No answer to a question of npx: what is not installed is an error.
    return { ...rest, ...own, PATH: `${bin}${delimiter}${rest["PATH"]}`, npm_config_yes: "false" };
  };
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
    url,
    home,
    kill,
    async manifest(name, version) {
      const response = await fetch(url + encodeURIComponent(name));
      const { versions } = (await response.json()) as { versions?: Record<string, Record<string, unknown>> };
      return versions?.[version] ?? {};
    },
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
      await rm(home, { recursive: true, force: true });
    },
  };
}
