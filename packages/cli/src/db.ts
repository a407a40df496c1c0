import { setTimeout as pause } from "node:timers/promises";
import { defined } from "@parley/a2a/internal/base/defined";
import { line } from "@parley/a2a/internal/base/display";
import { A2AError, type TaskState } from "@parley/a2a/internal/model/index";
import {
  eraseOwner,
  exportOwner,
  type Owner,
  type Store,
  type TaskSelection,
  type Upkeep,
} from "@parley/server/internal/store/index";
import { resumeTask, suspendedTasks } from "@parley/server/internal/store/upkeep";
import type { PostgresVersion } from "@parley/sql/postgres";
import { CommandError, UsageError } from "./errors.ts";
import { writeNewFile } from "./files.ts";
import type { Io } from "./io.ts";
import { defaultStore } from "./options.ts";
import { counted, print } from "./output/text.ts";
import { openFiles, openServed } from "./stores.ts";

/* `parley db`: the tables of PostgreSQL, and what operators delete, export and resume. Servers may run on the same database. */

interface DatabaseOptions {
  readonly databaseUrl?: string;
  readonly schema: string;
  readonly json?: boolean;
  readonly verbose?: boolean;
}

interface MigrateOptions extends DatabaseOptions {
  readonly dryRun?: boolean;
}

/** Creates the tables of a database, or brings them to the version of this release. */
export async function migrate(io: Io, options: MigrateOptions): Promise<number> {
  if (options.dryRun === true) return plan(io, options);
  const { migratePostgres } = await import("@parley/sql/postgres");
  const { found, newest } = await migratePostgres({ database: urlOf(io, options), schema: options.schema });
  print(io, options, { schema: options.schema, found, newest }, done(options.schema, { found, newest }));
  return 0;
}

function done(schema: string, { found, newest }: PostgresVersion): string {
  if (found === 0) return `Schema ${schema} was created with version ${newest}.`;
  if (found < newest) return `Schema ${schema} was brought from version ${found} to version ${newest}.`;
  return found === newest ? `Schema ${schema} has version ${newest}.` : ahead(schema, { found, newest });
}

/** Prints the statements that a migration would run. They can be run as they are. */
async function plan(io: Io, options: DatabaseOptions): Promise<number> {
  const { postgresPlan } = await import("@parley/sql/postgres");
  const { found, newest, statements } = await postgresPlan({ database: urlOf(io, options), schema: options.schema });
  const { schema } = options;
  const text = statements.map((each, at) => `-- version ${found + at + 1} of schema ${schema}\n${each.trim()}\n`);
  const nothing = `-- nothing to do: schema ${schema} has version ${found}, and this release version ${newest}`;
  print(io, options, { schema, found, newest, statements }, text.length === 0 ? nothing : text.join("\n").trimEnd());
  return 0;
}

/** Tells the version of the tables. Exit code 1: this release cannot work with them as they are. */
export async function status(io: Io, options: DatabaseOptions): Promise<number> {
  const { postgresPlan } = await import("@parley/sql/postgres");
  const { found, newest, usable } = await postgresPlan({ database: urlOf(io, options), schema: options.schema });
  print(
    io,
    options,
    { schema: options.schema, found, newest, usable },
    sentenceOf(options.schema, { found, newest, usable }),
  );
  return usable ? 0 : 1;
}

function sentenceOf(schema: string, version: PostgresVersion & { readonly usable: boolean }): string {
  const { found, newest, usable } = version;
  if (found === 0) return `There is no schema ${schema} of Parley. parley db migrate creates it.`;
  if (found > newest && usable) return ahead(schema, version);
  if (found > newest) {
    return `Schema ${schema} has version ${found}. This release supports version ${newest + 1} and earlier: upgrade it.`;
  }
  if (found < newest) return `Schema ${schema} has version ${found}. parley db migrate brings it to version ${newest}.`;
  return `Schema ${schema} has version ${found}, which is that of this release.`;
}

function ahead(schema: string, { found, newest }: PostgresVersion): string {
  return `Schema ${schema} has version ${found} of the next release. This one, of version ${newest}, works with it.`;
}

function urlOf(io: Io, { databaseUrl = io.env["DATABASE_URL"] }: DatabaseOptions): string {
  if (databaseUrl !== undefined && databaseUrl !== "") return databaseUrl;
  throw new UsageError("no database: pass --database-url, or set DATABASE_URL");
}

interface PlaceOptions extends DatabaseOptions {
  readonly store?: string;
}

interface PurgeOptions extends PlaceOptions, OwnerOptions {
  readonly before?: string;
  readonly state?: readonly TaskState[];
  readonly dryRun?: boolean;
  readonly yes?: boolean;
}

interface OwnerOptions {
  readonly agent?: string;
  readonly owner?: string;
  readonly subject?: string;
  readonly organization?: string;
}

interface SuspendedOptions extends PlaceOptions {
  readonly agent?: string;
}

interface ResumeOptions extends PlaceOptions {
  readonly agent: string;
}

interface EraseOptions extends PlaceOptions, OwnerOptions {
  readonly dryRun?: boolean;
  readonly yes?: boolean;
  readonly scrub?: boolean;
  readonly files?: string;
}

interface ExportOptions extends PlaceOptions, OwnerOptions {
  readonly out?: string;
  readonly files?: string;
}

/** Tasks of one transaction. */
const limit = 100;
/** How often tasks that another process holds are tried again, and milliseconds between two tries: a sweep of a server takes less. */
const maxTries = 25;
const betweenTries = 200;

const terminal: readonly TaskState[] = [
  "TASK_STATE_COMPLETED",
  "TASK_STATE_FAILED",
  "TASK_STATE_CANCELED",
  "TASK_STATE_REJECTED",
];

interface Opened {
  readonly store: Store;
  readonly upkeep: Upkeep;
}

/** Opens a file with `--store`, else PostgreSQL where there is a URL, else the default file. */
async function opened<T>(io: Io, options: PlaceOptions, run: (opened: Opened) => Promise<T>): Promise<T> {
  const url = options.databaseUrl ?? (options.store === undefined ? io.env["DATABASE_URL"] : undefined);
  if (options.store !== undefined && options.databaseUrl !== undefined) {
    throw new UsageError("--store is a file of SQLite, and --database-url a database of PostgreSQL: pass one of them");
  }
  const hint = "Pass --store with the file of the server, or --database-url";
  const isFile = url === undefined || url === "";
  let store: Store | undefined;
  try {
    store = isFile
      ? await openServed(io, options.store ?? defaultStore, hint)
      : await openPostgres(url, options.schema);
    const { upkeep } = store;
    if (upkeep === undefined) throw new CommandError("this store can neither delete nor export");
    return await run({ store, upkeep });
  } catch (cause) {
    if (!(cause instanceof A2AError) || cause.code !== "Unavailable") throw cause;
    // In other commands that is what an agent says.
    throw new CommandError(cause.message, { cause });
  } finally {
    await store?.close();
  }
}

async function openPostgres(database: string, schema: string): Promise<Store> {
  const { postgresStore } = await import("@parley/sql/postgres");
  return postgresStore({ database, schema, migrate: false, connections: 3 });
}

/** The name that an owner is stored under. `--subject` makes it as servers do that have no `ownerOf` of their own. */
function ownerOf({ owner, subject, organization }: OwnerOptions): string | undefined {
  if (owner !== undefined && subject !== undefined)
    throw new UsageError("--owner and --subject both name an owner: pass one of them");
  if (organization !== undefined && subject === undefined) throw new UsageError("--organization goes with --subject");
  return subject === undefined ? owner : JSON.stringify([organization ?? null, subject]);
}

function requiredOwner(options: OwnerOptions): string {
  const name = ownerOf(options);
  if (name === undefined)
    throw new UsageError("whose data? Pass --subject, or --owner with the name that it is stored under");
  return name;
}

/** The same owner with each agent. */
async function ownersOf(upkeep: Upkeep, name: string, { agent }: OwnerOptions): Promise<readonly Owner[]> {
  const all: Owner[] = [];
  for (let after: Owner | undefined; ;) {
    const page = await upkeep.owners({
      owner: name,
      limit,
      ...defined({ agent, after }),
    });
    all.push(...page);
    after = page.at(-1);
    if (page.length < limit) return all;
  }
}

/** The files that are outside of the database, where the user says where they are. */
async function filesOf(io: Io, { files }: { readonly files?: string }, store: Store) {
  return files === undefined ? undefined : openFiles(files, io.cwd, store);
}

async function confirmed(io: Io, question: string, yes: boolean | undefined): Promise<boolean> {
  if (yes === true) return true;
  if (!io.stderr.terminal) throw new UsageError("this deletes data for ever: pass --yes, or --dry-run to see how much");
  const answer = await io.ask(`${question} [y/N] `, { hidden: false });
  return /^y(es)?$/i.test(answer?.trim() ?? "");
}

function progress(io: Io, done: number, all: number): void {
  if (io.stderr.terminal) io.stderr.write(`\rDeleted ${done} of ${all} tasks`);
}

/** Lists suspended tasks. */
export async function suspended(io: Io, { agent, ...options }: SuspendedOptions): Promise<number> {
  return opened(io, options, async ({ store }) => {
    let found = 0;
    for await (const { task, contextId, run } of suspendedTasks(store, agent)) {
      found += 1;
      const about = { agent: task.agent, taskId: task.taskId, contextId, deaths: run?.deaths ?? 0 };
      const text = `${about.taskId}  agent ${about.agent}  deaths ${about.deaths}`;
      print(io, options, about, line(text));
    }
    if (found === 0) io.stderr.write("No task is suspended.\n");
    return 0;
  });
}

/** Resumes a suspended task. */
export async function resume(io: Io, taskId: string, options: ResumeOptions): Promise<number> {
  return opened(io, options, async ({ store }) => {
    if (!(await resumeTask(store, options.agent, taskId))) {
      throw new CommandError(`the agent ${options.agent} has no suspended task ${taskId}. See parley db suspended`);
    }
    const text = "Resumed. A running server takes the task over at once.";
    print(io, options, { agent: options.agent, taskId }, text);
    return 0;
  });
}

/** Deletes tasks, and conversations that have none, each batch in a short transaction. */
export async function purge(io: Io, options: PurgeOptions): Promise<number> {
  const { before, state = terminal, agent, dryRun = false, yes } = options;
  const owner = ownerOf(options);
  if (before === undefined && owner === undefined && agent === undefined && options.state === undefined) {
    throw new UsageError(
      "which tasks? Pass --before, --state, --agent or --owner; --before 0d means all that are over",
    );
  }
  const selection: TaskSelection = {
    states: state,
    ...defined({ before: before === undefined ? undefined : Date.parse(before), agent, owner }),
  };
  return opened(io, options, async ({ upkeep }) => {
    const found = await upkeep.count(selection);
    const tell = (deleted: number, conversations: number, text: string): void =>
      print(io, options, { found, deleted, conversations, dryRun }, text);
    if (dryRun) {
      tell(0, 0, `${counted(found, "task")} would be deleted.`);
      return 0;
    }
    const question = `Delete ${counted(found, "task")} with all that belongs to them, and conversations without tasks?`;
    if (!(await confirmed(io, question, yes))) return 1;
    let [deleted, conversations, left] = [0, 0, 0];
    for (let tries = 0; tries <= maxTries;) {
      const removed = await upkeep.remove(selection, limit);
      deleted += removed.deleted;
      conversations += removed.conversations;
      progress(io, deleted, Math.max(found, deleted));
      if (removed.more && removed.deleted + removed.conversations > 0) continue;
      // More may have ended meanwhile. Fewer are there where another process deletes as well, and those that it has locked were left out.
      left = deleted >= found ? 0 : await upkeep.count(selection);
      if (left === 0) break;
      tries += 1;
      await pause(betweenTries);
    }
    if (io.stderr.terminal) io.stderr.write("\n");
    const text = `${counted(deleted, "task")} and ${counted(conversations, "conversation")} without tasks deleted.`;
    tell(deleted, conversations, text);
    if (left > 0)
      throw new CommandError(`${counted(left, "task")} left, which another process holds. Run the command again`);
    return 0;
  });
}

/** Deletes all that an owner has. */
export async function erase(io: Io, options: EraseOptions): Promise<number> {
  const name = requiredOwner(options);
  const { dryRun = false, yes, scrub = false } = options;
  return opened(io, options, async ({ store, upkeep }) => {
    const files = await filesOf(io, options, store);
    const owners = await ownersOf(upkeep, name, options);
    let found = 0;
    for (const owner of owners) found += await upkeep.count(owner);
    const agents = owners.map(({ agent }) => agent);
    if (owners.length === 0) throw new CommandError(`nothing is stored of the owner ${name}`);
    if (dryRun) {
      const text = `${counted(found, "task")} of ${name} would be deleted, with everything else that it has with ${agents.join(", ")}.`;
      print(io, options, { owner: name, agents, found, deleted: 0, canceled: 0, dryRun }, text);
      return 0;
    }
    if (!(await confirmed(io, `Delete ${counted(found, "task")} of ${name}, and everything else that it has?`, yes)))
      return 1;
    let [deleted, canceled] = [0, 0];
    // Before the rest: after it nobody would know whose they are, if this is interrupted.
    let deletedFiles = await files?.deleteOf(name, agents);
    for (const owner of owners) {
      const erased = await eraseOwner(store, owner, { onProgress: (tasks) => progress(io, deleted + tasks, found) });
      deleted += erased.tasks;
      canceled += erased.canceled;
    }
    // And those that runs have stored until they were canceled.
    if (files !== undefined) deletedFiles = (deletedFiles ?? 0) + (await files.deleteOf(name, agents));
    if (scrub) await upkeep.scrub();
    if (io.stderr.terminal) io.stderr.write("\n");
    const outside = deletedFiles === undefined ? "" : `, and ${counted(deletedFiles, "file")}`;
    const text = `${counted(deleted, "task")} of ${name} deleted${outside}, with everything else that it had. ${counted(canceled, "task")} canceled first.`;
    const counts = { found, deleted, canceled, ...defined({ files: deletedFiles }), dryRun };
    print(io, options, { owner: name, agents, ...counts }, text);
    return 0;
  });
}

/** Rewrites the files of the database, so that nothing of deleted data is left in them. */
export async function scrub(io: Io, options: PlaceOptions): Promise<number> {
  return opened(io, options, async ({ upkeep }) => {
    await upkeep.scrub();
    print(io, options, { scrubbed: true }, "Nothing of deleted data is left.");
    return 0;
  });
}

/** Writes all that an owner has as JSON Lines. */
export async function exportData(io: Io, options: ExportOptions): Promise<number> {
  const name = requiredOwner(options);
  return opened(io, options, async ({ store, upkeep }) => {
    const agents = (await ownersOf(upkeep, name, options)).map(({ agent }) => agent);
    if (agents.length === 0) throw new CommandError(`nothing is stored of the owner ${name}`);
    const lines = exportOwner(store, name, agents);
    const pieces = (await filesOf(io, options, store))?.putInto(lines, name) ?? lines;
    if (options.out === undefined) {
      for await (const piece of pieces) {
        io.stdout.write(piece);
        await io.stdout.ready?.();
      }
      return 0;
    }
    if (await writeNewFile(io, options.out, pieces)) return 0;
    io.stderr.write(`Interrupted: there is no ${options.out}.\n`);
    return 130;
  });
}
