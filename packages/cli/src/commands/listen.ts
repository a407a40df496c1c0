import type { CallOptions } from "../connection.ts";
import type { FollowOptions } from "../follow.ts";
import { agentUrl, callOptions, count, data, file, resultOptions, url, type Program } from "../options.ts";

export interface ListenOptions extends CallOptions, FollowOptions {
  readonly message?: string;
  readonly file?: readonly string[];
  readonly data?: readonly string[];
  readonly port: number;
  readonly publicUrl?: string;
}

export function addListen({ io, command, finish }: Program): void {
  const listening = callOptions(
    command("listen", {
      summary: "Receive the webhooks of a task, and show them",
      description:
        "Opens a receiver on this machine, registers it for the task, and shows each event that arrives, with what proved its sender. At the end of the task, or at Ctrl-C, the webhook is removed. Exits with 1 if the task fails, is rejected or is canceled.",
      examples: [
        'parley listen http://localhost:4000 --message "Hello"',
        "parley listen http://localhost:4000 TASK",
        'parley listen http://localhost:4000 --message "Hello" --json',
      ],
    })
      .argument(...url)
      .argument("[task]", "id of the task")
      .option("--message <text>", "send this message, and listen to its task")
      .option(...file)
      .option(...data)
      .option("--port <port>", "port to listen on; 0 takes a free one", count(0, 65_535), 0)
      .option(
        "--public-url <url>",
        "URL at which the agent reaches this receiver, through a tunnel to its port",
        agentUrl,
      ),
  );
  resultOptions(listening).action(async (at: string, task: string | undefined, options: ListenOptions) => {
    // Loaded here, so that other commands start without the receiver.
    const { listen } = await import("../listen.ts");
    finish(await listen(io, at, task, options));
  });
}
