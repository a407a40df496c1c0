import type { Task, TaskState } from "@parley/a2a/internal/model/index";
import type { ListTasksRequest, ListTasksResponse } from "@parley/a2a/model";
import { jsonLine } from "@parley/a2a/internal/base/display";
import { Option } from "commander";
import { Saver } from "../artifacts.ts";
import { fileFetchOf } from "../file-fetch.ts";
import { open, type CallOptions } from "../connection.ts";
import { commandLine } from "../hints.ts";
import type { Io } from "../io.ts";
import { callOptions, count, resultOptions, stateOption, timeOption, url, type Program } from "../options.ts";
import { foldFor } from "../output/parts.ts";
import { stateNames } from "../output/states.ts";
import { showTask, showTasks } from "../output/task.ts";
import { styleFor } from "../output/text.ts";

export function addTasks({ io, command, finish }: Program): void {
  callOptions(
    command("tasks", {
      summary: "List your tasks",
      description: "The most recently changed come first.",
      examples: [
        "parley tasks http://localhost:4000",
        "parley tasks http://localhost:4000 --state input-required --since 2h",
        "parley tasks http://localhost:4000 --limit 500 --json",
      ],
    })
      .argument(...url)
      .option("--context <id>", "only tasks of this conversation")
      .addOption(
        new Option("--state <state>", `only tasks in this state: ${stateNames.join(", ")}`).argParser(stateOption),
      )
      .option(
        "--since <time>",
        "only tasks that changed since a time (2026-01-31T12:00Z) or within an age (30m, 2h, 7d)",
        (text: string) => timeOption(text),
      )
      .option("--limit <n>", "largest number of tasks", count(1), 50)
      .option("--page <token>", "token of the page to begin with, as the end of a list shows it"),
  ).action(async (at: string, options: TasksOptions) => finish(await tasks(io, at, options)));
}

interface TasksOptions extends CallOptions {
  readonly context?: string;
  readonly state?: TaskState;
  readonly since?: string;
  readonly limit: number;
  readonly page?: string;
}

/** The largest page size of the protocol (A2A 1.0 §3.1.4). */
const largestPage = 100;

async function tasks(io: Io, at: string, options: TasksOptions): Promise<number> {
  const client = await open(io, at, options);
  const filter: ListTasksRequest = {
    historyLength: 0,
    ...(options.context === undefined ? {} : { contextId: options.context }),
    ...(options.state === undefined ? {} : { status: options.state }),
    ...(options.since === undefined ? {} : { statusTimestampAfter: options.since }),
  };
  const found: Task[] = [];
  let pageToken = options.page;
  let page: ListTasksResponse;
  do {
    // Never more than is still missing, so that the token of the last page continues exactly where this list ends.
    const pageSize = Math.min(options.limit - found.length, largestPage);
    page = await client.listTasks({ ...filter, pageSize, ...(pageToken === undefined ? {} : { pageToken }) });
    found.push(...page.tasks);
    pageToken = page.nextPageToken;
    // A server that answers empty pages with a next token would be asked forever.
  } while (pageToken !== "" && page.tasks.length > 0 && found.length < options.limit);

  if (options.json === true) {
    io.stdout.write(`${jsonLine({ ...page, tasks: found, pageSize: found.length })}\n`);
    return 0;
  }
  if (found.length === 0) {
    io.stderr.write("No tasks.\n");
    return 0;
  }
  io.stdout.write(showTasks(found, styleFor(io.stdout, io.env), io.stdout.terminal ? io.stdout.columns : undefined));
  if (pageToken !== "") {
    io.stderr.write(`${found.length} of ${page.totalSize}; more with ${commandLine(["--page", pageToken])}\n`);
  }
  return 0;
}

export function addTask({ io, command, finish }: Program): void {
  const show = callOptions(
    command("task", {
      summary: "Show a task",
      description: "Its state, messages and artifacts at this moment.",
      examples: [
        "parley task http://localhost:4000 TASK",
        "parley task http://localhost:4000 TASK --history 0 --out results",
      ],
    })
      .argument(...url)
      .argument("<id>", "id of the task")
      .option("--history <n>", "number of messages to show, the newest; default: all", count(0)),
  );
  resultOptions(show).action(async (at: string, id: string, options: TaskOptions) =>
    finish(await task(io, at, id, options)),
  );
}

interface TaskOptions extends CallOptions {
  readonly history: number;
  readonly out?: string;
  readonly overwrite?: boolean;
  readonly fetchUrls?: boolean;
  readonly full?: boolean;
}

async function task(io: Io, at: string, id: string, options: TaskOptions): Promise<number> {
  const client = await open(io, at, options);
  const { out: folder, overwrite = false } = options;
  const fetch = fileFetchOf(client, at, options.fetchUrls === true);
  const saver =
    folder === undefined
      ? undefined
      : await Saver.at(io, { out: folder, overwrite, fetch }, (text) => io.stderr.write(`${text}\n`));
  const found = await client.getTask({ id, historyLength: options.history });
  io.stdout.write(
    options.json === true
      ? `${jsonLine(found)}\n`
      : showTask(found, styleFor(io.stdout, io.env), foldFor(io.stdout, options.full)),
  );
  for (const artifact of found.artifacts ?? []) await saver?.save(artifact);
  return 0;
}

export function addCancel({ io, command, finish }: Program): void {
  callOptions(
    command("cancel", { summary: "Cancel a task", examples: ["parley cancel http://localhost:4000 TASK"] })
      .argument(...url)
      .argument("<id>", "id of the task"),
  ).action(async (at: string, id: string, options: CallOptions) => finish(await cancel(io, at, id, options)));
}

async function cancel(io: Io, at: string, id: string, options: CallOptions): Promise<number> {
  const client = await open(io, at, options);
  const task = await client.cancelTask(id);
  io.stdout.write(
    options.json === true ? `${jsonLine(task)}\n` : showTask(task, styleFor(io.stdout, io.env), foldFor(io.stdout)),
  );
  return 0;
}
