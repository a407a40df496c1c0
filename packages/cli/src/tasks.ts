import { defined } from "@parley/a2a/internal/base/defined";
import { jsonLine } from "@parley/a2a/internal/base/display";
import type { Task, TaskState } from "@parley/a2a/internal/model/index";
import type { ListTasksRequest, ListTasksResponse } from "@parley/a2a/model";
import { Saver } from "./artifacts.ts";
import { fileFetchOf, open, type CallOptions } from "./connection.ts";
import type { FollowOptions } from "./follow.ts";
import type { Io } from "./io.ts";
import { foldFor } from "./output/parts.ts";
import { showTask, showTasks } from "./output/show.ts";
import { commandLine } from "./invocation.ts";
import { print, styleFor } from "./output/text.ts";

/* `parley tasks`, `task` and `cancel`. */

interface TasksOptions extends CallOptions {
  readonly context?: string;
  readonly state?: TaskState;
  readonly since?: string;
  readonly limit: number;
  readonly page?: string;
}

/** A2A 1.0 §3.1.4. */
const maxPageSize = 100;

export async function tasks(io: Io, at: string, options: TasksOptions): Promise<number> {
  const client = await open(io, at, options);
  const filter: ListTasksRequest = {
    historyLength: 0,
    ...defined({ contextId: options.context, status: options.state, statusTimestampAfter: options.since }),
  };
  const found: Task[] = [];
  let pageToken = options.page;
  let page: ListTasksResponse;
  do {
    // The last page is no larger than the remaining limit, so that its token continues where this list ends.
    const pageSize = Math.min(options.limit - found.length, maxPageSize);
    page = await client.listTasks({ ...filter, pageSize, ...defined({ pageToken }) });
    found.push(...page.tasks);
    pageToken = page.nextPageToken;
    // Stops at an empty page, which a server could repeat forever.
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

interface TaskOptions extends CallOptions, FollowOptions {
  readonly history: number;
}

export async function task(io: Io, at: string, id: string, options: TaskOptions): Promise<number> {
  const client = await open(io, at, options);
  const fetch = fileFetchOf(client, at, options.fetchUrls === true);
  const saver = await Saver.for(io, { ...options, fetch }, (text) => io.stderr.write(`${text}\n`));
  const found = await client.getTask({ id, historyLength: options.history });
  print(io, options, found, (style) => showTask(found, style, foldFor(io.stdout, options.full)));
  for (const artifact of found.artifacts ?? []) await saver?.save(artifact);
  return 0;
}

export async function cancel(io: Io, at: string, id: string, options: CallOptions): Promise<number> {
  const client = await open(io, at, options);
  const task = await client.cancelTask(id);
  print(io, options, task, (style) => showTask(task, style, foldFor(io.stdout)));
  return 0;
}
