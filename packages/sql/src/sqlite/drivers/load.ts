import type { Driver } from "../driver.ts";
import { openBun, type BunSqliteModule } from "./bun.ts";
import { driverOver } from "./library.ts";
import { openLibsql, type LibsqlModule } from "./libsql.ts";
import { isUsable, openNode, type NodeSqliteModule } from "./node.ts";

/**
 * A library that runs SQLite: the one that Node has since 22.16, the one that Bun has, or the package `libsql`, which
 * has to be installed.
 */
export type DriverName = "node:sqlite" | "bun:sqlite" | "libsql";

/** Opens a connection to a file, or to `:memory:`. */
export type OpenDriver = (path: string) => Driver;

/** The library is not there. The message says what to do about it. */
export class MissingDriver extends Error {}

/** The version that the tests run with. */
const libsqlVersion = "0.5.29";

/** Loads the driver of that name, or by default what the runtime has, or `libsql`. Rejects with a `MissingDriver`. */
export async function loadDriver(name?: DriverName): Promise<OpenDriver> {
  const open = await find(name ?? defaultDriver());
  if (open !== undefined) return open;
  if (name === undefined || name === "libsql") throw new MissingDriver(withoutLibsql(name));
  throw new MissingDriver(
    `${runtime()} has no ${name}${name === "node:sqlite" ? ", which needs Node 22.16 or newer" : ""}. ` +
      "Leave `driver` out, and the store takes what there is",
  );
}

/** The driver that a store takes when it is given none: what the runtime brings along, else `libsql`. */
export function defaultDriver(): DriverName {
  if ("bun" in process.versions) return "bun:sqlite";
  return nodeSqlite() === undefined ? "libsql" : "node:sqlite";
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
      // Asked for by name, so that no bundler looks for the module.
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

/** A module of the runtime; other runtimes than Node answer for names that they do not know as they like. */
function builtin(name: string): object | undefined {
  try {
    return process.getBuiltinModule(name);
  } catch {
    return undefined;
  }
}

async function libsql(): Promise<LibsqlModule | undefined> {
  try {
    return await import("libsql");
  } catch (cause) {
    const code = cause instanceof Error && "code" in cause ? cause.code : undefined;
    // One that is there but cannot be loaded, as on a machine that it has no binary for, says so itself.
    if (code === "ERR_MODULE_NOT_FOUND" && String(cause).includes("'libsql'")) return undefined;
    throw cause;
  }
}

function runtime(): string {
  const { bun, deno, node } = process.versions;
  if (bun !== undefined) return `Bun ${bun}`;
  return deno === undefined ? `Node ${node}` : `Deno ${deno}`;
}
