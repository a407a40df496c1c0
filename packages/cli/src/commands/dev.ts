import type { DevOptions } from "../dev/index.ts";
import { collect, type Program } from "../options.ts";
import { serveOptions } from "./serve.ts";

export function addDev({ io, command, finish }: Program): void {
  const dev = command("dev", {
    summary: "Serve the agents of a module while you write it",
    description:
      "Serves the module again when a file of its folder changes. Tasks that run go on: they finish in the process in which they began, or continue in the new one where the agent is resumable. A module that cannot be loaded leaves the server before in place.",
    examples: ["parley dev agent.ts", "parley dev src/agent.ts --watch prompts --port 8080"],
  });
  serveOptions(dev, 60)
    .option("--watch <path>", "also restart when this file changes, or a file of this folder; repeatable", collect)
    .action(async (file: string, options: DevOptions) => {
      // Loaded here, so that other commands start without the server and its database.
      const { dev } = await import("../dev/index.ts");
      finish(await dev(io, file, options));
    });
}
