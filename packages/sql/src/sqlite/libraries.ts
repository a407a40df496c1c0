import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { driverOver, retryWhileBusy, type Driver, type Library, type LibraryStatement, type Row } from "./driver.ts";

/** An SQLite library: Node's (22.16 or newer), Bun's, or the package `libsql`. */
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

/** The version that is tested. */
const libsqlVersion = "0.5.29";

/** The default: the library of the runtime, else `libsql`. */
export function defaultDriver(): DriverName {
  if ("bun" in process.versions) return "bun:sqlite";
  return nodeSqlite() === undefined ? "libsql" : "node:sqlite";
}

/** Loads a driver by its name, or the default driver. Rejects with a `MissingDriver`. */
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
 * Opens a connection. The settings read the file, so they wait while another process creates the file or closes its last connection.
 * `guard` wraps each attempt.
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
    // Four times the default, so that pages that many tasks rewrite are copied into the file less often.
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
    ? `${runtime()} has no built-in SQLite. Install a driver with \`${install}\`, or use Node 22.16 or newer`
    : `The driver libsql is not installed: \`${install}\``;
}

async function find(name: DriverName): Promise<OpenDriver | undefined> {
  switch (name) {
    case "node:sqlite": {
      const module = nodeSqlite();
      return module && ((path) => driverOver(openNode(module, path)));
    }
    case "bun:sqlite": {
      // Not imported, so that bundlers ignore the module.
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

/** A built-in module, if the runtime has it. Some runtimes throw. */
function builtin(name: string): object | undefined {
  try {
    return process.getBuiltinModule(name);
  } catch {
    return undefined;
  }
}

/** Loads the package from this program, or from the project in the working directory, because `npx` installs a program without `libsql`. */
async function libsql(): Promise<LibsqlModule | undefined> {
  try {
    return await import("libsql");
  } catch (cause) {
    const code = cause instanceof Error && "code" in cause ? cause.code : undefined;
    // Other errors mean that the package is installed but fails to load, such as if it has no binary for this machine.
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

/** The members of `node:sqlite` that are used here, as of Node 22.16. */
interface NodeSqliteModule {
  readonly DatabaseSync: new (path: string, options: { readonly timeout: number }) => NodeDatabase;
  readonly StatementSync: { readonly prototype: object };
}

interface NodeDatabase {
  readonly isTransaction: boolean;
  prepare(sql: string): NodeStatement;
  exec(sql: string): void;
  close(): void;
}

interface NodeStatement {
  columns(): readonly unknown[];
  setReadBigInts(enabled: boolean): void;
  setReturnArrays(enabled: boolean): void;
  run(...values: readonly unknown[]): {
    readonly changes: number | bigint;
    readonly lastInsertRowid: number | bigint;
  };
  get(...values: readonly unknown[]): unknown;
  all(...values: readonly unknown[]): unknown;
}

/** Before Node 22.16, rows can only be objects, and a connection does not report open transactions. */
function isUsable(module: NodeSqliteModule): boolean {
  return "setReturnArrays" in module.StatementSync.prototype;
}

/** A connection of `node:sqlite`. */
function openNode(module: NodeSqliteModule, path: string): Library {
  // SQLite does not wait for a busy file itself: `retryWhileBusy` does, without blocking the thread.
  const database = withCode(() => new module.DatabaseSync(path, { timeout: 0 }));
  return {
    prepare: (sql) => withCode(() => prepareNode(database, sql)),
    exec: (sql) => withCode(() => database.exec(sql)),
    inTransaction: () => database.isTransaction,
    close: () => database.close(),
  };
}

function prepareNode(database: NodeDatabase, sql: string): LibraryStatement {
  const statement = database.prepare(sql);
  statement.setReturnArrays(true);
  // In full text search the last id can exceed the safe integers; Node 26 would then throw.
  if (statement.columns().length === 0) statement.setReadBigInts(true);
  return {
    run(values) {
      const { changes, lastInsertRowid } = withCode(() => statement.run(...values));
      return { changes: Number(changes), lastId: Number(lastInsertRowid) };
    },
    get: (values) => withCode(() => statement.get(...values)) as Row | undefined,
    all: (values) => withCode(() => statement.all(...values)) as readonly Row[],
  };
}

/** SQLite's result codes by number (sqlite.org/rescode.html). The upper bytes of an extended code are details that are not used here. */
const codes =
  `OK ERROR INTERNAL PERM ABORT BUSY LOCKED NOMEM READONLY INTERRUPT IOERR CORRUPT NOTFOUND FULL CANTOPEN PROTOCOL EMPTY
  SCHEMA TOOBIG CONSTRAINT MISMATCH MISUSE NOLFS AUTH FORMAT RANGE NOTADB`.split(/\s+/);

/** Errors of `node:sqlite` have a number. Adds the named code that errors of the other libraries have. */
function withCode<T>(body: () => T): T {
  try {
    return body();
  } catch (thrown) {
    if (!(thrown instanceof Error) || !("errcode" in thrown) || typeof thrown.errcode !== "number") throw thrown;
    const code = `SQLITE_${codes[thrown.errcode & 0xff] ?? "ERROR"}`;
    throw Object.assign(new Error(thrown.message, { cause: thrown }), { code });
  }
}

/** The members of `bun:sqlite` that are used here. Its errors have SQLite's codes by name: `SQLITE_BUSY`. */
interface BunSqliteModule {
  readonly Database: new (
    path: string,
    options: { readonly create: boolean; readonly readwrite: boolean },
  ) => BunDatabase;
}

interface BunDatabase {
  readonly inTransaction: boolean;
  prepare(sql: string): BunStatement;
  exec(sql: string): unknown;
  close(): void;
}

interface BunStatement {
  run(...values: readonly unknown[]): { readonly changes: number; readonly lastInsertRowid: number | bigint };
  values(...values: readonly unknown[]): unknown;
  finalize(): void;
}

/** A connection of `bun:sqlite`, which closes only after its statements are finalized. */
function openBun(module: BunSqliteModule, path: string): Library {
  const database = new module.Database(path, { create: true, readwrite: true });
  const statements: BunStatement[] = [];
  return {
    prepare(sql) {
      const statement = database.prepare(sql);
      statements.push(statement);
      const all = (values: readonly unknown[]): readonly Row[] => statement.values(...values) as readonly Row[];
      return {
        run(values) {
          const { changes, lastInsertRowid } = statement.run(...values);
          return { changes, lastId: Number(lastInsertRowid) };
        },
        get: (values) => all(values)[0],
        all,
      };
    },
    exec: (sql) => void database.exec(sql),
    inTransaction: () => database.inTransaction,
    close() {
      for (const statement of statements.splice(0)) statement.finalize();
      database.close();
    },
  };
}

/** The members of the package `libsql` that are used here. Its errors have SQLite's codes by name: `SQLITE_BUSY`. */
interface LibsqlModule {
  readonly default: new (path: string, options: { readonly timeout: number }) => LibsqlDatabase;
}

interface LibsqlDatabase {
  readonly inTransaction: boolean;
  prepare(sql: string): LibsqlStatement;
  exec(sql: string): void;
  close(): void;
}

interface LibsqlStatement {
  readonly reader: boolean;
  raw(): void;
  run(values: unknown): { readonly changes: number; readonly lastInsertRowid: number | bigint };
  get(values: unknown): unknown;
  all(values: unknown): unknown;
}

/**
 * A connection of `libsql`. The driver rejects values of unknown types, which would crash it, and missing parameters, which it would
 * store as NULL.
 */
function openLibsql(module: LibsqlModule, path: string): Library {
  const database = openLibsqlFile(module, path);
  return {
    prepare(sql) {
      const statement = database.prepare(sql);
      // Returns rows as arrays. Throws for statements without rows.
      if (statement.reader) statement.raw();
      let hasReadAll = false;
      return {
        // The library would collect separate arguments into an array.
        run(values) {
          const { changes, lastInsertRowid } = statement.run(values);
          return { changes, lastId: Number(lastInsertRowid) };
        },
        get(values) {
          // After `all`, the library's `get` ignores its values and uses the values of `all`.
          if (hasReadAll) return (statement.all(values) as readonly Row[])[0];
          return statement.get(values) as Row | undefined;
        },
        all(values) {
          hasReadAll = true;
          return statement.all(values) as readonly Row[];
        },
      };
    },
    exec: (sql) => database.exec(sql),
    inTransaction: () => database.inTransaction,
    close: () => database.close(),
  };
}

function openLibsqlFile(module: LibsqlModule, path: string): LibsqlDatabase {
  try {
    // SQLite does not wait for a busy file itself: `retryWhileBusy` does, without blocking the thread.
    return new module.default(path, { timeout: 0 });
  } catch (cause) {
    // The code of this error is empty.
    throw Object.assign(new Error("unable to open database file", { cause }), { code: "SQLITE_CANTOPEN" });
  }
}
