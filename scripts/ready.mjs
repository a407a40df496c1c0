// Makes a clone ready to run: dependencies installed, packages built. Runs on plain Node, before anything is installed.

import { spawn } from "node:child_process";
import { existsSync, statSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

export const root = dirname(dirname(fileURLToPath(import.meta.url)));

const oldest = [20, 19];

/** @param {string} message @returns {never} */
function giveUp(message) {
  process.stderr.write(`${message}\n`);
  process.exit(1);
}

function checkNode() {
  const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
  const [wantedMajor = 0, wantedMinor = 0] = oldest;
  if (major > wantedMajor || (major === wantedMajor && minor >= wantedMinor)) return;
  giveUp(`Parley needs Node ${oldest.join(".")} or newer; this is ${process.version}.`);
}

/**
 * Runs a program to its end, in this terminal; a signal that ends this process ends it too.
 * @param {string} file @param {readonly string[]} args @param {boolean} [shell]
 * @returns {Promise<number>} Its exit code.
 */
function run(file, args, shell = false) {
  const child = spawn(file, args, { cwd: root, stdio: ["ignore", 2, 2], shell });
  /** @param {NodeJS.Signals} signal */
  const pass = (signal) => child.kill(signal);
  /** @type {readonly NodeJS.Signals[]} */
  const signals = ["SIGINT", "SIGTERM", "SIGHUP"];
  for (const signal of signals) process.on(signal, pass);
  return new Promise((done, fail) => {
    child.on("error", fail);
    child.on("close", (code, signal) => {
      for (const name of signals) process.off(name, pass);
      if (signal === null) done(code ?? 1);
      else process.kill(process.pid, signal);
    });
  });
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
  const code = npm?.endsWith("js")
    ? await run(process.execPath, [npm, ...args])
    : await run("npm", args, process.platform === "win32");
  if (code !== 0) giveUp(`npm ci failed (exit code ${code}); its output is above.`);
}

/** @param {readonly string[]} projects */
async function build(projects) {
  const fresh = !existsSync(join(root, "packages", "a2a", "dist"));
  if (fresh) process.stderr.write("Building the packages (tsc -b) …\n");
  // Incremental: a build without changes takes a fraction of a second.
  const code = await run(process.execPath, [join(root, "node_modules", "typescript", "bin", "tsc"), "-b", ...projects]);
  if (code !== 0) giveUp(`The build failed (tsc -b, exit code ${code}); its output is above.`);
}

/**
 * npm runs a script in a shell, and most shells end at a signal without passing it on. So this process ends itself when its shell is
 * gone.
 */
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

/**
 * Installs and builds what is missing.
 * @param {readonly string[]} [projects] Projects to build, with those that they reference.
 */
export async function ready(
  projects = ["packages/cli", "packages/nats", "packages/extensions", "packages/testing", "examples/data-analyst"],
) {
  await installed();
  await build(projects);
}

/**
 * Continues as another program in this process, so that signals and the exit code need no forwarding.
 * @param {string} file Below the root. @param {readonly string[]} [args]
 */
export async function become(file, args = []) {
  const path = join(root, file);
  process.argv = [process.execPath, path, ...args];
  await import(pathToFileURL(path).href);
}
