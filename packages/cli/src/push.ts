import { access, open } from "node:fs/promises";
import { userInfo } from "node:os";
import { resolve } from "node:path";
import type { PushEntry, PushOperator, PushOperatorOptions } from "@parley/server/internal/push/index";
import { jsonLine, line } from "@parley/a2a/internal/base/display";
import { CommandError, UsageError } from "./errors.ts";
import { fileReason } from "./files.ts";
import { commandLine } from "./hints.ts";
import type { Io } from "./io.ts";
import { showWebhook, showWebhooks } from "./output/webhooks.ts";
import { styleFor } from "./output/text.ts";
import { defaultFile, openFile } from "./stored.ts";

/** The id of an agent that is served alone, at the root of its server. */
export const rootAgent = "/";

export interface StoreOptions {
  readonly store: string;
  readonly agent: string;
  readonly json?: boolean;
  readonly verbose?: boolean;
}

export interface ListOptions extends Omit<StoreOptions, "agent"> {
  readonly agent?: string;
  readonly state?: "due" | "parked";
  readonly limit: number;
}

export interface ChangeOptions extends StoreOptions {
  readonly seq?: number;
  /** File to which a record of the change is appended. */
  readonly audit?: string;
}

/** Opens the file that a server has made. Another file is not made: it would have no webhooks. */
async function withOperator<T>(
  io: Io,
  { store: where }: Pick<StoreOptions, "store">,
  run: (operator: PushOperator) => Promise<T>,
  auditing: PushOperatorOptions = {},
): Promise<T> {
  if (where === "memory")
    throw new UsageError("a store in memory can be seen by its server alone: --store takes a file");
  const path = resolve(io.cwd, where);
  try {
    await access(path);
  } catch (error) {
    throw new CommandError(
      `cannot open the store ${where}: ${fileReason(error)}. Pass --store with the file of the server`,
      { cause: error },
    );
  }
  const { pushOperator } = await import("@parley/server/internal/push/index");
  // A thread takes longer to start than all that is done here.
  const store = await openFile(where, ({ sqliteStore }) => sqliteStore({ path, create: false, thread: false }));
  try {
    return await run(pushOperator(store, auditing));
  } finally {
    await store.close();
  }
}

export async function list(io: Io, { agent, state, limit, ...options }: ListOptions): Promise<number> {
  const found = await withOperator(io, options, (operator) =>
    operator.list({ limit, ...(agent !== undefined && { agent }), ...(state !== undefined && { state }) }),
  );
  if (options.json === true) {
    io.stdout.write(`${jsonLine({ webhooks: found })}\n`);
    return 0;
  }
  if (found.length === 0) {
    io.stderr.write(`${state === "parked" ? "No webhook is parked." : "No webhook has anything to deliver."}\n`);
    return 0;
  }
  io.stdout.write(showWebhooks(found, rootAgent, styleFor(io.stdout, io.env)));
  if (found.length === limit) io.stderr.write(`There may be more: see --limit.\n`);
  const parked = found.find((entry) => entry.state === "parked");
  if (parked !== undefined) {
    const { task, configId } = parked;
    io.stderr.write(
      `To try a parked one again:\n  ${again(io.program, "retry", task.agent, options.store, task.taskId, configId)}\n`,
    );
  }
  return 0;
}

/** A command line for webhooks of the same file, ready to be copied. */
function again(
  program: string,
  what: "show" | "retry",
  agent: string,
  store: string,
  ...ids: readonly string[]
): string {
  const flags = [
    ...(store === defaultFile ? [] : [`--store=${store}`]),
    ...(agent === rootAgent ? [] : [`--agent=${agent}`]),
  ];
  // Callers choose ids of webhooks. One that begins with a dash would be parsed as an option.
  const words = ids.some((id) => id.startsWith("-")) ? ["--", ...ids] : ids;
  return `${program} ${commandLine(["push", what, ...flags, ...words])}`;
}

export async function show(io: Io, id: string, options: StoreOptions): Promise<number> {
  const found = await withOperator(io, options, (operator) => operator.show(options.agent, id));
  if (found.length === 0) throw noWebhooks(id, options);
  print(io, found, options);
  return 0;
}

function noWebhooks(id: string, { agent, store }: StoreOptions): CommandError {
  return new CommandError(
    `the task ${id} of the agent ${agent} has no webhooks in ${store}. Is it a task of another --agent?`,
  );
}

function print(io: Io, found: readonly PushEntry[], { json }: Pick<StoreOptions, "json">): void {
  if (json === true) io.stdout.write(`${jsonLine({ webhooks: found })}\n`);
  else io.stdout.write(found.map((entry) => showWebhook(entry, styleFor(io.stdout, io.env))).join("\n"));
}

export async function change(
  io: Io,
  what: "retry" | "drop",
  { id, config }: { readonly id: string; readonly config: string },
  options: ChangeOptions,
): Promise<number> {
  const { agent, seq } = options;
  const act = async (operator: PushOperator): Promise<number> => {
    const of = seq === undefined ? {} : { seq };
    if (!(await operator[what](agent, id, config, of))) {
      const others = await operator.show(agent, id);
      if (others.length === 0) throw noWebhooks(id, options);
      const known = others.some((entry) => entry.configId === config);
      const missing = known && seq !== undefined ? `refused event ${seq} of the webhook` : "webhook";
      throw new CommandError(
        `the task ${id} has no ${missing} ${config}. See ${again(io.program, "show", agent, options.store, id)}`,
      );
    }
    const left = await operator.show(agent, id);
    const entry = left.find((each) => each.configId === config);
    if (options.json === true) print(io, left, options);
    else io.stderr.write(`${done(what, seq, entry)}\n`);
    return 0;
  };
  if (options.audit === undefined) return withOperator(io, options, act);
  // Opened first: nothing is changed that cannot be recorded.
  const file = await openAudit(io, options.audit);
  const lines: string[] = [];
  const by = userInfo().username;
  try {
    return await withOperator(io, options, act, { by, audit: (record) => void lines.push(`${jsonLine(record)}\n`) });
  } finally {
    await file.appendFile(lines.join(""));
    await file.close();
  }
}

async function openAudit(io: Io, audit: string) {
  try {
    return await open(resolve(io.cwd, audit), "a", 0o600);
  } catch (error) {
    throw new CommandError(`cannot open the file ${audit} for the audit: ${fileReason(error)}`, { cause: error });
  }
}

function done(what: "retry" | "drop", seq: number | undefined, entry: PushEntry | undefined): string {
  const event = seq === undefined ? "" : `The refused event ${seq} is `;
  if (what === "drop") return seq === undefined ? "The webhook is deleted." : `${event}dropped.`;
  if (seq !== undefined) return `${event}delivered once more, before the others.`;
  if (entry?.state === "idle") return "Everything is delivered already.";
  return entry?.state === "delivering"
    ? "It is being delivered just now."
    : `It is tried again now, at ${line(entry?.url ?? "")}.`;
}
