import { open } from "node:fs/promises";
import { userInfo } from "node:os";
import { resolve } from "node:path";
import type { PushEntry, PushOperator } from "@parley/server/internal/push/index";
import type { PushOperatorOptions } from "@parley/server/internal/push/operator";
import { defined } from "@parley/a2a/internal/base/defined";
import { jsonLine, line } from "@parley/a2a/internal/base/display";
import { CommandError } from "./errors.ts";
import { fileReason } from "./files.ts";
import type { Io } from "./io.ts";
import { showWebhook, showWebhooks } from "./output/show.ts";
import { commandLine } from "./invocation.ts";
import { print, styleFor } from "./output/text.ts";
import { defaultStore, rootAgent } from "./options.ts";
import { openServed } from "./stores.ts";

interface StoreOptions {
  readonly store: string;
  readonly agent: string;
  readonly json?: boolean;
  readonly verbose?: boolean;
}

interface ListOptions extends Omit<StoreOptions, "agent"> {
  readonly agent?: string;
  readonly state?: "due" | "parked";
  readonly limit: number;
}

interface ChangeOptions extends StoreOptions {
  readonly seq?: number;
  /** File to which an audit record is appended. */
  readonly audit?: string;
}

async function withOperator<T>(
  io: Io,
  { store: name }: Pick<StoreOptions, "store">,
  run: (operator: PushOperator) => Promise<T>,
  auditing: PushOperatorOptions = {},
): Promise<T> {
  const store = await openServed(io, name, "Pass --store with the file of the server");
  const { pushOperator } = await import("@parley/server/internal/push/operator");
  try {
    return await run(pushOperator(store, auditing));
  } finally {
    await store.close();
  }
}

/** `parley push list`. */
export async function list(io: Io, { agent, state, limit, ...options }: ListOptions): Promise<number> {
  const found = await withOperator(io, options, (operator) => operator.list({ limit, ...defined({ agent, state }) }));
  if (options.json === true) {
    io.stdout.write(`${jsonLine({ webhooks: found })}\n`);
    return 0;
  }
  if (found.length === 0) {
    io.stderr.write(`${state === "parked" ? "No parked webhooks." : "No pending webhooks."}\n`);
    return 0;
  }
  io.stdout.write(showWebhooks(found, rootAgent, styleFor(io.stdout, io.env)));
  if (found.length === limit) io.stderr.write(`There may be more; raise --limit.\n`);
  const parked = found.find((entry) => entry.state === "parked");
  if (parked !== undefined) {
    const { task, configId } = parked;
    io.stderr.write(
      `To retry a parked webhook:\n  ${again(io.program, "retry", task.agent, options.store, task.taskId, configId)}\n`,
    );
  }
  return 0;
}

/** A command line for webhooks of the same file, to be copied. */
function again(
  program: string,
  what: "show" | "retry",
  agent: string,
  store: string,
  ...ids: readonly string[]
): string {
  const flags = [
    ...(store === defaultStore ? [] : [`--store=${store}`]),
    ...(agent === rootAgent ? [] : [`--agent=${agent}`]),
  ];
  // Callers choose the IDs of webhooks. A leading dash would make one an option.
  const words = ids.some((id) => id.startsWith("-")) ? ["--", ...ids] : ids;
  return `${program} ${commandLine(["push", what, ...flags, ...words])}`;
}

/** `parley push show`. */
export async function show(io: Io, id: string, options: StoreOptions): Promise<number> {
  const found = await withOperator(io, options, (operator) => operator.show(options.agent, id));
  if (found.length === 0) throw noWebhooks(id, options);
  printAll(io, found, options);
  return 0;
}

function noWebhooks(id: string, { agent, store }: StoreOptions): CommandError {
  return new CommandError(
    `task ${id} of agent ${agent} has no webhooks in ${store}. Does it belong to another --agent?`,
  );
}

function printAll(io: Io, webhooks: readonly PushEntry[], options: Pick<StoreOptions, "json">): void {
  print(io, options, { webhooks }, (style) => webhooks.map((entry) => showWebhook(entry, style)).join("\n"));
}

/** `parley push retry`. */
export function retry(io: Io, id: string, config: string, options: ChangeOptions): Promise<number> {
  return change(io, "retry", { id, config }, options);
}

/** `parley push drop`. */
export function drop(io: Io, id: string, config: string, options: ChangeOptions): Promise<number> {
  return change(io, "drop", { id, config }, options);
}

async function change(
  io: Io,
  what: "retry" | "drop",
  { id, config }: { readonly id: string; readonly config: string },
  options: ChangeOptions,
): Promise<number> {
  const { agent, seq } = options;
  const act = async (operator: PushOperator): Promise<number> => {
    if (!(await operator[what](agent, id, config, defined({ seq })))) {
      const others = await operator.show(agent, id);
      if (others.length === 0) throw noWebhooks(id, options);
      const known = others.some((entry) => entry.configId === config);
      const missing = known && seq !== undefined ? `rejected event ${seq} of webhook` : "webhook";
      throw new CommandError(
        `task ${id} has no ${missing} ${config}. See ${again(io.program, "show", agent, options.store, id)}`,
      );
    }
    const left = await operator.show(agent, id);
    const entry = left.find((each) => each.configId === config);
    if (options.json === true) printAll(io, left, options);
    else io.stderr.write(`${done(what, seq, entry)}\n`);
    return 0;
  };
  if (options.audit === undefined) return withOperator(io, options, act);
  // Opened first, so that no change goes unrecorded.
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
    throw new CommandError(`cannot open the audit file ${audit}: ${fileReason(error)}`, { cause: error });
  }
}

function done(what: "retry" | "drop", seq: number | undefined, entry: PushEntry | undefined): string {
  const event = `Rejected event ${seq}`;
  if (what === "drop") return seq === undefined ? "Deleted the webhook." : `${event} is dropped.`;
  if (seq !== undefined) return `${event} will be delivered again, before the others.`;
  if (entry?.state === "idle") return "Everything is already delivered.";
  return entry?.state === "delivering" ? "It is being delivered now." : `Retrying now, at ${line(entry?.url ?? "")}.`;
}
