import { setTimeout as pause } from "node:timers/promises";
import { defined } from "@parley/a2a/internal/base/defined";
import type { TaskState } from "@parley/a2a/internal/model/index";
import {
  eraseOwner,
  exportOwner,
  type Owner,
  type Store,
  type TaskSelection,
  type Upkeep,
} from "@parley/server/internal/store/index";
import type { PostgresVersion } from "@parley/sql/postgres";
import { CommandError, UsageError } from "./errors.ts";
import { writeNewFile } from "./files.ts";
import type { Io } from "./io.ts";
import { counted, print } from "./output/text.ts";
import { openFiles, openStore } from "./stores.ts";

/* `parley db`: creates the tables of PostgreSQL, and deletes and exports data. Servers may run on the same database. */

interface DatabaseOptions {
  readonly databaseUrl?: string;
  readonly schema: string;
  readonly json?: boolean;
  readonly verbose?: boolean;
}

interface MigrateOptions extends DatabaseOptions {
  readonly dryRun?: boolean;
}

/** `parley db migrate`. */
export async function migrate(io: Io, options: MigrateOptions): Promise<number> {
  if (options.dryRun === true) return plan(io, options);
  const { migratePostgres } = await import("@parley/sql/postgres");
  const { found, newest } = await migratePostgres({ database: urlOf(io, options), schema: options.schema });
  print(io, options, { schema: options.schema, found, newest }, done(options.schema, { found, newest }));
  return 0;
}

function done(schema: string, { found, newest }: PostgresVersion): string {
  if (found === 0) return `Created schema ${schema} with version ${newest}.`;
  if (found < newest) return `Upgraded schema ${schema} from version ${found} to version ${newest}.`;
  return found === newest ? `Schema ${schema} is up to date (version ${newest}).` : ahead(schema, { found, newest });
}

/** Prints the statements of a migration, ready to run. */
async function plan(io: Io, options: DatabaseOptions): Promise<number> {
  const { postgresPlan } = await import("@parley/sql/postgres");
  const { found, newest, statements } = await postgresPlan({ database: urlOf(io, options), schema: options.schema });
  const { schema } = options;
  const text = statements.map((each, at) => `-- version ${found + at + 1} of schema ${schema}\n${each.trim()}\n`);
  const nothing = `-- nothing to do: schema ${schema} has version ${found}, this release version ${newest}`;
  print(io, options, { schema, found, newest, statements }, text.length === 0 ? nothing : text.join("\n").trimEnd());
  return 0;
}

/** `parley db status`. Returns 1 if this release cannot use the tables. */
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
  if (found === 0) return `Parley has no schema ${schema}. Create it with parley db migrate.`;
  if (found > newest && usable) return ahead(schema, version);
  if (found > newest) {
    return `Schema ${schema} has version ${found}. This release supports up to version ${newest + 1}. Upgrade this program.`;
  }
  if (found < newest)
    return `Schema ${schema} has version ${found}. Upgrade it to version ${newest} with parley db migrate.`;
  return `Schema ${schema} has version ${found}, the version of this release.`;
}

function ahead(schema: string, { found, newest }: PostgresVersion): string {
  return `Schema ${schema} has version ${found} of the next release. This release (version ${newest}) works with it.`;
}

function urlOf(io: Io, { databaseUrl = io.env["DATABASE_URL"] }: DatabaseOptions): string {
  if (databaseUrl !== undefined && databaseUrl !== "") return databaseUrl;
  throw new UsageError("no database: pass --database-url or set DATABASE_URL");
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

/** Tasks per transaction. */
const batchSize = 100;
/** Maximum retries for tasks that another process has locked. They last longer than the sweep of a server. */
const maxRetries = 25;
const retryDelayMs = 200;

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

/** Opens a store that deletes and exports. */
async function opened<T>(io: Io, options: PlaceOptions, run: (opened: Opened) => Promise<T>): Promise<T> {
  return openStore(io, options, async (store) => {
    const { upkeep } = store;
    if (upkeep === undefined) throw new CommandError("this store supports neither deletion nor export");
    return run({ store, upkeep });
  });
}

/** The stored name of an owner. With `--subject`, builds it as servers without `ownerOf` do. */
function ownerOf({ owner, subject, organization }: OwnerOptions): string | undefined {
  if (owner !== undefined && subject !== undefined) throw new UsageError("pass either --owner or --subject");
  if (organization !== undefined && subject === undefined) throw new UsageError("--organization requires --subject");
  return subject === undefined ? owner : JSON.stringify([organization ?? null, subject]);
}

function requiredOwner(options: OwnerOptions): string {
  const name = ownerOf(options);
  if (name === undefined) throw new UsageError("no owner: pass --subject, or --owner with its stored name");
  return name;
}

/** The owner, as one entry per agent. */
async function ownersOf(upkeep: Upkeep, name: string, { agent }: OwnerOptions): Promise<readonly Owner[]> {
  const all: Owner[] = [];
  for (let after: Owner | undefined; ;) {
    const page = await upkeep.owners({ owner: name, limit: batchSize, ...defined({ agent, after }) });
    all.push(...page);
    after = page.at(-1);
    if (page.length < batchSize) return all;
  }
}

async function filesOf(io: Io, { files }: { readonly files?: string }, store: Store) {
  return files === undefined ? undefined : openFiles(files, io.cwd, store);
}

async function confirmed(io: Io, question: string, yes: boolean | undefined): Promise<boolean> {
  if (yes === true) return true;
  if (!io.stderr.terminal)
    throw new UsageError("deletion cannot be undone: pass --yes to confirm, or --dry-run to count");
  const answer = await io.ask(`${question} [y/N] `, { hidden: false });
  return /^y(es)?$/i.test(answer?.trim() ?? "");
}

function progress(io: Io, done: number, all: number): void {
  if (io.stderr.terminal) io.stderr.write(`\rDeleted ${done} of ${all} tasks`);
}

/** `parley db purge`. Deletes each batch in a short transaction. */
export async function purge(io: Io, options: PurgeOptions): Promise<number> {
  const { before, state = terminal, agent, dryRun = false, yes } = options;
  const owner = ownerOf(options);
  if (before === undefined && owner === undefined && agent === undefined && options.state === undefined) {
    throw new UsageError(
      "no tasks selected: pass --before, --state, --agent or --owner; --before 0d selects all finished tasks",
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
    for (let tries = 0; tries <= maxRetries;) {
      const removed = await upkeep.remove(selection, batchSize);
      deleted += removed.deleted;
      conversations += removed.conversations;
      progress(io, deleted, Math.max(found, deleted));
      if (removed.more && removed.deleted + removed.conversations > 0) continue;
      // More tasks may have ended meanwhile, and tasks that another deleting process had locked were skipped.
      left = deleted >= found ? 0 : await upkeep.count(selection);
      if (left === 0) break;
      tries += 1;
      await pause(retryDelayMs);
    }
    if (io.stderr.terminal) io.stderr.write("\n");
    const text = `${counted(deleted, "task")} and ${counted(conversations, "conversation")} without tasks deleted.`;
    tell(deleted, conversations, text);
    if (left > 0)
      throw new CommandError(`${counted(left, "task")} left, locked by another process. Run the command again`);
    return 0;
  });
}

/** `parley db erase`. */
export async function erase(io: Io, options: EraseOptions): Promise<number> {
  const name = requiredOwner(options);
  const { dryRun = false, yes, scrub = false } = options;
  return opened(io, options, async ({ store, upkeep }) => {
    const files = await filesOf(io, options, store);
    const owners = await ownersOf(upkeep, name, options);
    let found = 0;
    for (const owner of owners) found += await upkeep.count(owner);
    const agents = owners.map(({ agent }) => agent);
    if (owners.length === 0) throw new CommandError(`no data of owner ${name}`);
    if (dryRun) {
      const text = `${counted(found, "task")} of ${name} would be deleted, with all other data of the owner with ${agents.join(", ")}.`;
      print(io, options, { owner: name, agents, found, deleted: 0, canceled: 0, dryRun }, text);
      return 0;
    }
    if (!(await confirmed(io, `Delete ${counted(found, "task")} of ${name}, and all other data of the owner?`, yes)))
      return 1;
    let [deleted, canceled] = [0, 0];
    // Files first: if the deletion was interrupted after the other data, the owner of the files would be unknown.
    let deletedFiles = await files?.deleteOf(name, agents);
    for (const owner of owners) {
      const erased = await eraseOwner(store, owner, { onProgress: (tasks) => progress(io, deleted + tasks, found) });
      deleted += erased.tasks;
      canceled += erased.canceled;
    }
    // Runs may have stored more files before they were canceled.
    if (files !== undefined) deletedFiles = (deletedFiles ?? 0) + (await files.deleteOf(name, agents));
    if (scrub) await upkeep.scrub();
    if (io.stderr.terminal) io.stderr.write("\n");
    const outside = deletedFiles === undefined ? "" : `, and ${counted(deletedFiles, "file")}`;
    const text = `${counted(deleted, "task")} of ${name} deleted${outside}, with all other data of the owner. ${counted(canceled, "task")} canceled first.`;
    const counts = { found, deleted, canceled, ...defined({ files: deletedFiles }), dryRun };
    print(io, options, { owner: name, agents, ...counts }, text);
    return 0;
  });
}

/** `parley db scrub`. */
export async function scrub(io: Io, options: PlaceOptions): Promise<number> {
  return opened(io, options, async ({ upkeep }) => {
    await upkeep.scrub();
    print(io, options, { scrubbed: true }, "No deleted data remains in the file.");
    return 0;
  });
}

/** `parley db export`. */
export async function exportData(io: Io, options: ExportOptions): Promise<number> {
  const name = requiredOwner(options);
  return opened(io, options, async ({ store, upkeep }) => {
    const agents = (await ownersOf(upkeep, name, options)).map(({ agent }) => agent);
    if (agents.length === 0) throw new CommandError(`no data of owner ${name}`);
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
    io.stderr.write(`Interrupted; removed ${options.out}.\n`);
    return 130;
  });
}
