import { open } from "../connection.ts";
import type { Io } from "../io.ts";
import type { CallOptions } from "../options.ts";
import { showTask } from "../output/task.ts";
import { styleFor } from "../output/style.ts";
import { jsonLine } from "@parley/conform/terminal";

export async function cancel(io: Io, url: string, id: string, options: CallOptions): Promise<number> {
  const client = await open(io, url, options);
  const task = await client.cancelTask(id);
  io.stdout.write(
    options.json === true ? `${jsonLine(task)}\n` : showTask(task, styleFor(io.stdout, io.env), io.stdout.terminal),
  );
  return 0;
}
