// Makes a clone ready to run: dependencies installed, packages built. Runs on plain Node, before anything is installed.

import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, statSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

export const root = dirname(dirname(fileURLToPath(import.meta.url)));

/** @param {string} message @returns {never} */
function giveUp(message) {
  process.stderr.write(`${message}\n`);
  process.exit(1);
}

function checkNode() {
  const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
  if (major < 20 || (major === 20 && minor < 19))
    giveUp(`Parley needs Node 20.19 or newer; this is ${process.version}.`);
}

/** Runs a program in this terminal, and gives up if it fails. @param {string} what @param {string} file @param {readonly string[]} args */
function run(what, file, args) {
  const { status, error } = spawnSync(file, args, {
    cwd: root,
    stdio: ["ignore", 2, 2],
    shell: file === "npm" && process.platform === "win32",
  });
  if (error !== undefined) throw error;
  if (status !== 0) giveUp(`${what} failed (exit code ${status ?? 1}); its output is above.`);
}

/** npm writes its hidden lockfile last. If this file is missing or too old, no install was completed. @param {string} folder */
function isInstalled(folder) {
  const installed = join(folder, "node_modules", ".package-lock.json");
  const wanted = join(folder, "package-lock.json");
  // npm writes the two files one after the other: allow a second between them.
  return existsSync(installed) && statSync(installed).mtimeMs >= statSync(wanted).mtimeMs - 1000;
}

/**
 * Installs the lockfile of a folder, unless it is installed.
 * @param {string} folder Absolute. @param {readonly string[]} [options] Further ones of npm.
 */
export async function install(folder, options = []) {
  if (isInstalled(folder)) return;
  process.stderr.write(
    `Installing dependencies (npm ci${folder === root ? "" : ` in ${relative(root, folder)}/`}) …\n`,
  );
  const npm = process.env["npm_execpath"];
  // Development dependencies are needed to build and test, whatever NODE_ENV says.
  const args = ["ci", "--prefix", folder, "--include=dev", "--no-audit", "--no-fund", "--loglevel=error", ...options];
  if (npm?.endsWith("js")) run("npm ci", process.execPath, [npm, ...args]);
  else run("npm ci", "npm", args);
}

/** Ends this process when its shell is gone: npm runs a script in a shell, and most shells end at a signal without passing it on. */
function endWithNpm() {
  if (process.env["npm_lifecycle_event"] === undefined) return;
  const shell = process.ppid;
  const watch = setInterval(() => {
    if (process.ppid === shell) return;
    clearInterval(watch);
    process.kill(process.pid, "SIGTERM");
  }, 250).unref();
}

/** Installs what is missing. */
export async function installed() {
  endWithNpm();
  checkNode();
  await install(root);
}

/** Builds the application of the console, unless it is newer than its sources. */
function buildConsole() {
  const folder = join(root, "packages", "console", "app");
  const built = join(folder, "..", "dist", "app", "index.html");
  const sources = readdirSync(folder, { recursive: true, encoding: "utf8" });
  const changed = sources.map((name) => statSync(join(folder, name)).mtimeMs);
  if (existsSync(built) && statSync(built).mtimeMs > Math.max(...changed)) return;
  const vite = join(root, "node_modules/vite/bin/vite.js");
  run("The build of the console", process.execPath, [vite, "build", folder, "--logLevel=warn"]);
}

/** Installs and builds what is missing. Incremental: a build without changes takes a fraction of a second. */
export async function ready() {
  await installed();
  if (!existsSync(join(root, "packages", "a2a", "dist"))) process.stderr.write("Building the packages (tsc -b) …\n");
  run("tsc -b", process.execPath, [join(root, "node_modules/typescript/bin/tsc"), "-b", "tsconfig.build.json"]);
  buildConsole();
}

/**
 * Continues as another program in this process, so that signals and the exit code need no forwarding.
 * @param {string} file Below the root. @param {readonly string[]} [args]
 */
export async function become(file, args = []) {
  if (file.endsWith(".ts")) (await import("tsx/esm/api")).register();
  const path = join(root, file);
  process.argv = [process.execPath, path, ...args];
  await import(pathToFileURL(path).href);
}
