import { access, stat } from "node:fs/promises";
import { resolve } from "node:path";
import { withoutSlashes } from "@parley/a2a/internal/base/index";
import { defined } from "@parley/a2a/internal/base/defined";
import { line } from "@parley/a2a/internal/base/display";
import { A2AError } from "@parley/a2a/internal/model/index";
import { GrowingBytes } from "@parley/a2a/internal/protocol/index";
import { blobsBelongTo, deleteBlobsOf, deleteIncomingBlobs } from "@parley/server/internal/blobs/deletion";
import { withBlobs } from "@parley/server/internal/blobs/deliver";
import type { BlobStore } from "@parley/server/internal/blobs/port";
import type { Store } from "@parley/server/internal/store/index";
import type * as sqlite from "@parley/sql/sqlite";
import { callHeaders, operatorToken } from "./connection.ts";
import { CommandError, systemReason, UsageError } from "./errors.ts";
import { fileReason } from "./files.ts";
import type { Io } from "./io.ts";
import { defaultStore } from "./options.ts";

/* The stores of servers: their databases, the large files outside of them, and the operators' API. */

/** Opens a store on a file. `name`: the file as the user named it, for the error. */
export async function openFile(name: string, open: (module: typeof sqlite) => Promise<Store>): Promise<Store> {
  try {
    return await open(await import("@parley/sql/sqlite"));
  } catch (cause) {
    throw new CommandError(`cannot open the store ${name}: ${fileReason(cause)}`, { cause });
  }
}

/** Opens the existing file of a server. `hint`: what to pass if the file does not exist. */
export async function openServed(io: Io, name: string, hint: string): Promise<Store> {
  if (name === "memory") throw new UsageError("--store must be a file; only its server can read a store in memory");
  const path = resolve(io.cwd, name);
  try {
    await access(path);
  } catch (cause) {
    throw new CommandError(`cannot open the store ${name}: ${fileReason(cause)}. ${hint}`, { cause });
  }
  // Starting a thread takes longer than the whole command.
  return openFile(name, ({ sqliteStore }) => sqliteStore({ path, create: false, thread: false }));
}

/** The location of a database. */
export interface PlaceOptions {
  readonly store?: string;
  readonly databaseUrl?: string;
  readonly schema: string;
  readonly verbose?: boolean;
}

/** Opens the file of `--store`, else PostgreSQL if there is a URL, else the default file. */
export async function openStore<T>(io: Io, options: PlaceOptions, run: (store: Store) => Promise<T>): Promise<T> {
  const url = options.databaseUrl ?? (options.store === undefined ? io.env["DATABASE_URL"] : undefined);
  if (options.store !== undefined && options.databaseUrl !== undefined) {
    throw new UsageError("pass either --store, an SQLite file, or --database-url, a PostgreSQL database");
  }
  const hint = "Pass --store with the file of the server, or --database-url";
  const isFile = url === undefined || url === "";
  let store: Store | undefined;
  try {
    store = isFile
      ? await openServed(io, options.store ?? defaultStore, hint)
      : await openPostgres(url, options.schema);
    return await run(store);
  } catch (cause) {
    if (!(cause instanceof A2AError) || cause.code !== "Unavailable") throw cause;
    // Not an A2AError: users would read Unavailable as the answer of an agent.
    throw new CommandError(cause.message, { cause });
  } finally {
    await store?.close();
  }
}

async function openPostgres(database: string, schema: string): Promise<Store> {
  const { postgresStore } = await import("@parley/sql/postgres");
  return postgresStore({ database, schema, migrate: false, connections: 3 });
}

const methods = ["put", "get", "delete", "list"] as const;

function isBlobStore(value: unknown): value is BlobStore {
  return typeof value === "object" && value !== null && methods.every((name) => name in value);
}

/** The files of a server outside its database. */
interface StoredFiles {
  /** Deletes the files of an owner with these agents, and returns how many there were. */
  deleteOf(owner: string, agents: readonly string[]): Promise<number>;
  /** Adds the owner's files to the pieces of an export. */
  putInto(pieces: AsyncIterable<string>, owner: string): AsyncIterable<string>;
}

/** Opens the files in a folder, or in the BlobStore that a module exports. They must belong to the database. */
export async function openFiles(where: string, cwd: string, store: Store): Promise<StoredFiles> {
  const files = await filesAt(where, cwd);
  if ((await blobsBelongTo(files, store)) === false) {
    throw new CommandError(`the files at ${where} belong to another database. Pass --files for this one`);
  }
  return {
    async deleteOf(owner, agents) {
      let deleted = await deleteIncomingBlobs(files, owner);
      for (const agent of agents) deleted += await deleteBlobsOf(files, { agent, owner });
      return deleted;
    },
    putInto: (pieces, owner) => withBlobs(pieces, files, owner),
  };
}

async function filesAt(where: string, cwd: string): Promise<BlobStore> {
  const path = resolve(cwd, where);
  let isFolder: boolean;
  try {
    isFolder = (await stat(path)).isDirectory();
  } catch (cause) {
    throw new UsageError(`cannot read ${where}: ${fileReason(cause)}`, { cause });
  }
  if (isFolder) return (await import("@parley/node")).fileBlobs(path);
  const value = await (await import("./modules.ts")).loadDefault(where, cwd, isBlobStore);
  if (isBlobStore(value)) return value;
  throw new CommandError(`${where} must export a BlobStore, such as "export default s3Blobs(client)"`);
}

/** Options of every command of `parley ops`. */
export interface OpsOptions extends PlaceOptions {
  readonly url: string;
  readonly token?: string;
  readonly header?: readonly string[];
  readonly json?: boolean;
}

export type Inputs = Readonly<Record<string, string | number | boolean | readonly string[] | undefined>>;

/** Calls a route, by its name. `undefined`: there is no such task. */
export type Ask = <Answer>(id: string, inputs?: Inputs) => Promise<Answer | undefined>;

/** Opens the API of a server, or with `--store` or `--database-url` the database itself. */
export async function asking<T>(io: Io, options: OpsOptions, run: (ask: Ask) => Promise<T>): Promise<T> {
  const { operatorRoutes } = await import("@parley/server/internal/operate/routes");
  const routeOf = (id: string) => {
    const route = operatorRoutes.find((each) => each.id === id);
    if (route === undefined) throw new Error(`there is no route ${id}`);
    return route;
  };
  if (options.store === undefined && options.databaseUrl === undefined) {
    const headers = { ...callHeaders(options, io.env, operatorToken), "content-type": "application/json" };
    return run(async <Answer>(id: string, inputs: Inputs = {}) => {
      const { method, path } = routeOf(id);
      return fetched<Answer>(options.url, method, path, { headers, inputs: defined(inputs) });
    });
  }
  const [{ createOperator }, { directHost }, { readInputs }] = await Promise.all([
    import("@parley/server/internal/operate/operator"),
    import("@parley/server/internal/operate/direct"),
    import("@parley/server/internal/operate/routes"),
  ]);
  return openStore(io, options, async (store) => {
    const clock = store.clock ?? { now: () => Date.now() };
    const operator = createOperator({ store, clock, host: directHost(store, clock) });
    const by = io.env["USER"] ?? io.env["USERNAME"];
    return run(async <Answer>(id: string, inputs: Inputs = {}) => {
      const route = routeOf(id);
      const texts = Object.entries(defined(inputs)).map(([name, value]) => [
        name,
        route.method === "GET" ? String(value) : value,
      ]);
      const given = readInputs(route, new Map(texts as [string, unknown][]));
      const { reason } = inputs;
      const context = {
        ...(by !== undefined && by !== "" && { principal: { subject: by } }),
        ...(typeof reason === "string" && { reason }),
      };
      return (await route.run(operator, given, context)) as Answer | undefined;
    });
  });
}

interface Fetching {
  readonly headers: Readonly<Record<string, string>>;
  readonly inputs: Inputs;
}

async function fetched<Answer>(
  base: string,
  method: "GET" | "POST",
  path: string,
  { headers, inputs }: Fetching,
): Promise<Answer | undefined> {
  const url = new URL(withoutSlashes(base) + path);
  if (method === "GET") for (const [name, value] of Object.entries(inputs)) url.searchParams.set(name, String(value));
  const body = method === "POST" ? { body: JSON.stringify(inputs) } : {};
  let response: Response;
  try {
    response = await fetch(url, { method, headers, redirect: "error", signal: AbortSignal.timeout(60_000), ...body });
  } catch (cause) {
    const reason = systemReason(cause) ?? "the server does not answer";
    throw new CommandError(`no operators' API at ${base}: ${reason}. ${startWithOperators}`, { cause });
  }
  const answer = await jsonOf(response);
  if (answer === undefined) throw elsewhere(base, `HTTP ${response.status} with another answer`);
  if (response.ok) return answer as Answer;
  if ("ok" in answer) return answer as Answer;
  const { error } = answer as { readonly error?: { readonly message?: string } };
  if (response.status === 404 && error?.message === "There is no such task") return undefined;
  if (response.status === 404) throw elsewhere(base, "HTTP 404");
  const text = error?.message ?? `HTTP ${response.status}`;
  throw new CommandError(`${base} answered ${response.status}: ${line(text)}`);
}

/** Maximum bytes of an answer. A page of a log has 4 MiB at most, unless one of its records is larger. */
const maxAnswer = 64 << 20;

async function jsonOf(response: Response): Promise<object | undefined> {
  const bytes = new GrowingBytes(1 << 20);
  const body: AsyncIterable<Uint8Array> | null = response.body;
  try {
    for await (const piece of body ?? []) {
      bytes.append(piece);
      if (bytes.length > maxAnswer) return undefined;
    }
    const answer: unknown = JSON.parse(new TextDecoder().decode(bytes.view()));
    // An array is a list of tasks in A2A 0.3, so the URL is the URL of an agent.
    return typeof answer === "object" && answer !== null && !Array.isArray(answer) ? answer : undefined;
  } catch {
    return undefined;
  }
}

const startWithOperators = "Start the server with the option operators, or pass --url, --store or --database-url";

function elsewhere(base: string, seen: string): CommandError {
  const usual = new URL("/ops", base).href;
  // The default address was tried: another path would not be found either.
  const hint = withoutSlashes(base) === usual ? startWithOperators : `Pass --url with its path, such as ${usual}`;
  return new CommandError(`no operators' API at ${base}: ${seen}. ${hint}`);
}
