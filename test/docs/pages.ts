import { execFile, spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { transform } from "esbuild";
import { afterAll, onTestFinished } from "vitest";

/**
 * Runs the programs of a page unchanged, except for the port, which replaces 4000. A `ts server` block is started, and the `ts client`
 * and `sh` blocks after it run against it.
 */

export const root = join(import.meta.dirname, "../..");

/** The folder for the programs of a test file. It is inside node_modules, so that the programs find the packages. */
export const room = makeRoom();

function makeRoom(): string {
  const folder = join(root, "node_modules", ".parley-docs");
  mkdirSync(folder, { recursive: true });
  const made = mkdtempSync(join(folder, "run-"));
  afterAll(() => rmSync(made, { recursive: true }));
  return made;
}

export interface Block {
  readonly language: string;
  readonly role: string;
  readonly code: string;
}

export async function blocksOf(page: string): Promise<readonly Block[]> {
  const text = await readFile(join(root, page), "utf8");
  return [...text.matchAll(/^```(\w+)(?: ([\w-]+))?\n([\s\S]*?)^```$/gm)].map(
    ([, language = "", role = "", code = ""]) => ({
      language,
      role,
      code,
    }),
  );
}

/** A block whose role makes it a program. */
export interface Program extends Block {
  /** The lines that the program must print, from a `text printed` block directly after the program. */
  readonly printed: readonly string[];
}

const fence = /^```(\w+) ([\w -]+)\n([\s\S]*?)^```$(?:\n+^```text printed\n([\s\S]*?)^```$)?/gm;

/** Returns the programs of a page, in order. */
export function programsOf(page: string): readonly Program[] {
  const text = readFileSync(join(root, page), "utf8");
  const found = [...text.matchAll(fence)].map(([, language = "", role = "", code = "", printed = ""]) => ({
    language,
    role,
    code,
    printed: printed.split("\n").filter((line) => line !== ""),
  }));
  return found.filter(({ language }) => language !== "text");
}

/** Folders with third-party pages, generated pages, or no pages (`.changeset`). */
const skipped = ["node_modules", "dist", ".git", ".pages", ".cache", ".changeset", ".parley", "templates"];

/** Returns the paths of all pages of the repository. */
export function allPages(folder = ""): readonly string[] {
  return readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = folder === "" ? entry.name : `${folder}/${entry.name}`;
    if (entry.isDirectory()) return skipped.includes(entry.name) ? [] : allPages(path);
    return entry.name.endsWith(".md") ? [path] : [];
  });
}

/** Returns the paths of the pages with programs. */
export function pagesWithPrograms(): readonly string[] {
  return allPages().filter((page) => programsOf(page).length > 0);
}

export async function write(name: string, code: string): Promise<string> {
  const file = join(room, name);
  await writeFile(file, code);
  return file;
}

/** Writes a program without its types, because Node starts TypeScript programs far more slowly. */
export async function compile(name: string, code: string): Promise<string> {
  const { code: plain } = await transform(code, { loader: "ts", format: "esm", target: "node20" });
  return write(name.replace(/\.mts$/, ".mjs"), plain.replaceAll('.mts"', '.mjs"'));
}

/** A running server program, with its address and its output. */
export interface Started {
  readonly url: string;
  printed(): string;
  /** Ends the program like `kill -9`. */
  kill(): Promise<void>;
}

export async function start(name: string, code: string, cwd = room): Promise<Started> {
  const file = await compile(name, code);
  const child: ChildProcess = spawn(process.execPath, [file], { cwd, stdio: ["ignore", "pipe", "pipe"] });
  const kill = async (): Promise<void> => {
    child.kill("SIGKILL");
    if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
  };
  onTestFinished(kill);
  let said = "";
  return new Promise((resolve, reject) => {
    const listen = (chunk: Buffer): void => {
      said += chunk.toString();
      const url = /Listening on (\S+)/.exec(said)?.[1];
      if (url !== undefined) resolve({ url, printed: () => said, kill });
    };
    child.stdout?.on("data", listen);
    child.stderr?.on("data", listen);
    child.on("exit", (code) => reject(new Error(`The server ended with ${code}:\n${said}`)));
  });
}

export const run = promisify(execFile);
