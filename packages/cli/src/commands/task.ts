import { resolve } from "node:path";
import { saveArtifact } from "../artifacts.ts";
import { open } from "../connection.ts";
import type { Io } from "../io.ts";
import type { CallOptions } from "../options.ts";
import { styleFor } from "../output/style.ts";
import { showTask } from "../output/task.ts";
import { jsonLine } from "@parley/conform/terminal";

export interface TaskOptions extends CallOptions {
  readonly history: number;
  readonly out?: string;
}

export async function task(io: Io, url: string, id: string, options: TaskOptions): Promise<number> {
  const client = await open(io, url, options);
  const found = await client.getTask({ id, historyLength: options.history });
  io.stdout.write(
    options.json === true ? `${jsonLine(found)}\n` : showTask(found, styleFor(io.stdout, io.env), io.stdout.terminal),
  );
  if (options.out !== undefined) {
    for (const artifact of found.artifacts ?? []) {
      const paths = await saveArtifact(resolve(io.cwd, options.out), artifact);
      for (const path of paths) io.stderr.write(`saved ${path}\n`);
    }
  }
  return 0;
}
