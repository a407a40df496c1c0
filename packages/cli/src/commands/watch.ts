import type { StreamResponse } from "@parley/a2a";
import { isInterrupted, isTerminal } from "@parley/a2a/model";
import type { Client } from "@parley/a2a/client";
import { open } from "../connection.ts";
import { follow, type FollowOptions } from "../follow.ts";
import { hintsFor } from "../hints.ts";
import type { Io } from "../io.ts";
import type { CallOptions } from "../options.ts";

/** For an agent that does not stream: the task now, and again once it has ended. */
async function* poll(client: Client, id: string, signal: AbortSignal): AsyncGenerator<StreamResponse> {
  const task = await client.getTask(id, { signal });
  yield { task };
  if (isTerminal(task.status.state) || isInterrupted(task.status.state)) return;
  yield { task: await client.waitFor(id, { signal }) };
}

export async function watch(io: Io, url: string, id: string, options: CallOptions & FollowOptions): Promise<number> {
  const client = await open(io, url, options);
  const streams = client.card.capabilities.streaming === true;
  return follow(io, (signal) => (streams ? client.subscribeToTask(id, { signal }) : poll(client, id, signal)), {
    hints: hintsFor(url, options),
    options,
  });
}
