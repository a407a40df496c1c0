import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { driverOver, retryWhileBusy, type Driver } from "../driver.ts";
import {
  isUsable,
  openBun,
  openLibsql,
  openNode,
  type BunSqliteModule,
  type LibsqlModule,
  type NodeSqliteModule,
} from "./libraries.ts";

/** An SQLite library: that of Node since 22.16, that of Bun, or the package `libsql`. */
export type DriverName = "node:sqlite" | "bun:sqlite" | "libsql";

/** Opens a connection to a file, or to `:memory:`. */
export type OpenDriver = (path: string) => Driver;

export interface ConnectionOptions {
  readonly path: string;
  readonly driver: DriverName;
  readonly synchronous: "FULL" | "NORMAL";
  readonly busyTimeout: number;
  readonly maxPages: number | undefined;
}

/** The library is missing. The message says how to install it. */
export class MissingDriver extends Error {}

/** The version that the tests use. */
const libsqlVersion = "0.5.29";

/** The default: the library of the runtime, else `libsql`. */
export function defaultDriver(): DriverName {
  if ("bun" in process.versions) return "bun:sqlite";
  return nodeSqlite() === undefined ? "libsql" : "node:sqlite";
}

/** Loads a driver by its name, or the default one. Rejects with a `MissingDriver`. */
export async function loadDriver(name?: DriverName): Promise<OpenDriver> {
  const open = await find(name ?? defaultDriver());
  if (open !== undefined) return open;
  if (name === undefined || name === "libsql") throw new MissingDriver(withoutLibsql(name));
  throw new MissingDriver(
    `${runtime()} has no ${name}${name === "node:sqlite" ? ", which needs Node 22.16 or newer" : ""}. ` +
      "Leave out `driver`, and the store uses the library that is available",
  );
}

/**
 * Opens a connection. Its settings read the file, so they wait while another process creates it or closes it as the last one. `guard`
 * wraps each attempt.
 */
export function openConnection(
  open: OpenDriver,
  options: ConnectionOptions,
  guard: (body: () => Driver) => Driver = (body) => body(),
): Promise<Driver> {
  return retryWhileBusy(() => guard(() => connectionOf(open, options)), options.busyTimeout);
}

function connectionOf(open: OpenDriver, { path, synchronous, maxPages }: ConnectionOptions): Driver {
  const driver = open(path);
  try {
    driver.exec(`PRAGMA synchronous = ${synchronous}`);
    // Four times the default: pages that many tasks rewrite are copied into the file less often.
    driver.prepare("PRAGMA wal_autocheckpoint = 4000").all();
    if (maxPages !== undefined) driver.prepare(`PRAGMA max_page_count = ${Math.trunc(maxPages)}`).all();
    return driver;
  } catch (thrown) {
    driver.close();
    throw thrown;
  }
}

function withoutLibsql(asked: DriverName | undefined): string {
  const install = `npm install libsql@${libsqlVersion}`;
  return asked === undefined
    ? `${runtime()} has no SQLite of its own. Install a driver with \`${install}\`, or use Node 22.16 or newer`
    : `The driver libsql is not installed: \`${install}\``;
}

async function find(name: DriverName): Promise<OpenDriver | undefined> {
  switch (name) {
    case "node:sqlite": {
      const module = nodeSqlite();
      return module && ((path) => driverOver(openNode(module, path)));
    }
    case "bun:sqlite": {
      // Not imported, so that no bundler looks for the module.
      const module = builtin("bun:sqlite") as BunSqliteModule | undefined;
      return module && ((path) => driverOver(openBun(module, path)));
    }
    case "libsql": {
      const module = await libsql();
      return module && ((path) => driverOver(openLibsql(module, path)));
    }
  }
}

function nodeSqlite(): NodeSqliteModule | undefined {
  const module = builtin("node:sqlite") as NodeSqliteModule | undefined;
  return module !== undefined && isUsable(module) ? module : undefined;
}

/** A module of the runtime, if it has one. Some runtimes throw. */
function builtin(name: string): object | undefined {
  try {
    return process.getBuiltinModule(name);
  } catch {
    return undefined;
  }
}

/** The package, from this program or from the project in the working directory: `npx` installs a program without it. */
async function libsql(): Promise<LibsqlModule | undefined> {
  try {
    return await import("libsql");
  } catch (cause) {
    const code = cause instanceof Error && "code" in cause ? cause.code : undefined;
    // Other errors mean that the package is installed and fails to load, such as without a binary for this machine.
    if (code !== "ERR_MODULE_NOT_FOUND" || !String(cause).includes("'libsql'")) throw cause;
  }
  const file = fileInProject("libsql");
  return file === undefined ? undefined : ((await import(pathToFileURL(file).href)) as LibsqlModule);
}

function fileInProject(name: string): string | undefined {
  try {
    return createRequire(join(process.cwd(), "package.json")).resolve(name);
  } catch {
    return undefined;
  }
}

function runtime(): string {
  const { bun, deno, node } = process.versions;
  if (bun !== undefined) return `Bun ${bun}`;
  return deno === undefined ? `Node ${node}` : `Deno ${deno}`;
}
