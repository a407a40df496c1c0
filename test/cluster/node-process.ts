import { spawn, type ChildProcess } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";
import { connect, type Client } from "@parley/a2a/internal/client/index";
import { bundled } from "../programs.ts";

/** A line that a node printed. */
export interface Said {
  readonly event: string;
  readonly taskId?: string;
  readonly attempt?: number;
  readonly kind?: string;
  readonly text?: string;
  readonly aborted?: boolean;
  readonly url?: string;
  /** The time when the line arrived, on the monotonic clock. */
  readonly at: number;
}

/** A process of a cluster. */
export interface NodeProcess {
  readonly child: ChildProcess;
  readonly said: readonly Said[];
  /** Waits until the process has printed this event. */
  until(event: string, matches?: Partial<Said>): Promise<Said>;
  client(path?: string): Promise<Client>;
  /** Sends a message, and returns the id of the message's task. */
  begin(text: string, path?: string): Promise<string>;
}

const worker = await bundled(fileURLToPath(new URL("worker.ts", import.meta.url)));

/** Starts a node of a cluster, and kills it after the test. `atEnd`: for nodes that start during a test. `execArgv`: options of Node. */
export async function startNode(
  database: string,
  schema: string,
  options: object = {},
  atEnd: (kill: () => void) => void = onTestFinished,
  execArgv: readonly string[] = [],
): Promise<NodeProcess> {
  const child = spawn(process.execPath, [...execArgv, worker, database, schema, JSON.stringify(options)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  atEnd(() => void child.kill("SIGKILL"));
  const said: Said[] = [];
  const waiting = new Set<() => void>();
  createInterface({ input: child.stdout }).on("line", (line) => {
    said.push({ ...(JSON.parse(line) as Said), at: performance.now() });
    for (const look of waiting) look();
  });
  const until: NodeProcess["until"] = (event, matches = {}) =>
    new Promise((resolve) => {
      const look = (): void => {
        const found = said.find((each) =>
          Object.entries({ event, ...matches }).every(([name, value]) => each[name as keyof Said] === value),
        );
        if (found === undefined) return;
        waiting.delete(look);
        resolve(found);
      };
      waiting.add(look);
      look();
    });
  const { url = "" } = await until("ready");
  const client = (path = ""): Promise<Client> => connect(`${url.replace(/\/$/, "")}${path}`);
  return {
    child,
    said,
    until,
    client,
    async begin(text, path) {
      const { task } = await (
        await client(path)
      ).sendMessage({ message: text, configuration: { returnImmediately: true } });
      return task?.id ?? "";
    },
  };
}

/** Prints a figure for the documentation, if PARLEY_FIGURES is set. */
export function figure(text: string): void {
  if (process.env["PARLEY_FIGURES"] !== undefined) process.stdout.write(`${text}\n`);
}
