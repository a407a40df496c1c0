import { execFile, spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";
import { inject } from "vitest";

const exec = promisify(execFile);

/** The registry of setup.ts, which has all packages, and a shell whose npm installs from that registry. */
export interface Published {
  /** The URL of the registry. */
  readonly url: string;
  /** Returns the published manifest of a version, or an empty object if the version was not published. */
  manifest(name: string, version: string): Promise<Readonly<Record<string, unknown>>>;
  /** An empty home folder. The shell also finds programs in the folder's `bin`. */
  readonly home: string;
  /** Runs a command line in a shell. Returns the command's output. */
  shell(line: string, cwd: string): Promise<string>;
  /** Starts a server by a command line. Once the output matches, resolves to the first group of the match, or to all output. */
  serving(line: string, cwd: string, pattern: RegExp): Promise<string>;
  /** Ends the servers. */
  kill(): Promise<void>;
  /** Ends the servers, and removes the folder. */
  close(): Promise<void>;
}

/** Gives a test file access to the published packages. */
export async function openPublished(): Promise<Published> {
  const { url, env: own } = inject("registry");
  const home = await mkdtemp(join(tmpdir(), "parley-tarballs-"));
  const children: ChildProcess[] = [];
  const environment = (): NodeJS.ProcessEnv => {
    const { NO_COLOR: _, FORCE_COLOR: __, NODE_OPTIONS: ___, ...rest } = process.env;
    const bin = join(home, "bin");
    // npx must fail if a package is missing, instead of installing the package.
    return { ...rest, ...own, PATH: `${bin}${delimiter}${rest["PATH"]}`, npm_config_yes: "false" };
  };
  async function kill(): Promise<void> {
    for (const child of children.splice(0)) {
      if (child.exitCode !== null || child.signalCode !== null) continue;
      const gone = once(child, "exit");
      // Kills the process group, because npx runs the program in a child process.
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
