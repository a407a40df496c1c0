import type { StreamResponse } from "@parley/a2a/internal/model/index";
import { isInterrupted, isTerminal } from "@parley/a2a/model";
import type { Client } from "@parley/a2a/internal/client/index";
import { open, type CallOptions } from "../connection.ts";
import { fileFetchOf } from "../file-fetch.ts";
import { follow, type FollowOptions } from "../follow.ts";
import { hintsFor } from "../hints.ts";
import type { Io } from "../io.ts";
import { callOptions, resultOptions, url, type Program } from "../options.ts";
import { sending } from "../sending.ts";

export function addWatch({ io, command, finish }: Program): void {
  const watching = callOptions(
    command("watch", {
      summary: "Watch a task until it ends",
      description: "Exits with 1 if the task fails, is rejected or is canceled.",
      examples: ["parley watch http://localhost:4000 TASK", "parley watch http://localhost:4000 TASK --out results"],
    })
      .argument(...url)
      .argument("<task>", "id of the task"),
  );
  resultOptions(watching).action(async (at: string, id: string, options: CallOptions & FollowOptions) =>
    finish(await watch(io, at, id, options)),
  );
}

/** For an agent that does not stream: the task now, and again once it has ended. */
async function* poll(client: Client, id: string, signal: AbortSignal): AsyncGenerator<StreamResponse> {
  const task = await client.getTask(id, { signal });
  yield { task };
  if (isTerminal(task.status.state) || isInterrupted(task.status.state)) return;
  yield { task: await client.waitFor(id, { signal }) };
}

async function watch(io: Io, at: string, id: string, options: CallOptions & FollowOptions): Promise<number> {
  const client = await open(io, at, options);
  const streams = client.card.capabilities.streaming === true;
  const asks = io.interactive && options.json !== true;
  return follow(io, (signal) => (streams ? client.subscribeToTask(id, { signal }) : poll(client, id, signal)), {
    fetch: fileFetchOf(client, at, options.fetchUrls === true),
    hints: hintsFor(at, options, io.program),
    options,
    streams,
    leavesAtForm: true,
    ...(asks && {
      answer: (taskId, data) => sending(client, { taskId, parts: [{ data }] }, { streams, wait: true }),
    }),
  });
}
