import type { Task, TaskState } from "@parley/a2a";
import type { ListTasksRequest, ListTasksResponse } from "@parley/a2a/model";
import { open } from "../connection.ts";
import type { Io } from "../io.ts";
import type { CallOptions } from "../options.ts";
import { styleFor } from "../output/style.ts";
import { showTasks } from "../output/task.ts";
import { jsonLine } from "@parley/conform/terminal";
import { commandLine } from "../shell.ts";

export interface TasksOptions extends CallOptions {
  readonly context?: string;
  readonly state?: TaskState;
  readonly since?: string;
  readonly limit: number;
  readonly page?: string;
}

/** The largest page size of the protocol (A2A 1.0 §3.1.4). */
const largestPage = 100;

export async function tasks(io: Io, url: string, options: TasksOptions): Promise<number> {
  const client = await open(io, url, options);
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
  io.stdout.write(showTasks(found, styleFor(io.stdout, io.env)));
  if (pageToken !== "") {
    io.stderr.write(`${found.length} of ${page.totalSize}; more with ${commandLine(["--page", pageToken])}\n`);
  }
  return 0;
}
