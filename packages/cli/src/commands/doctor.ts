import type { DoctorOptions } from "../doctor/index.ts";
import { callOptions, url, type Program } from "../options.ts";

export function addDoctor({ io, command, finish }: Program): void {
  callOptions(
    command("doctor", {
      summary: "Find out why an agent cannot be called, or not well",
      description:
        "Looks at a server as clients see it: its card, TLS, the addresses and versions on the card, streams, the clock. Says how to mend what is wrong. Changes nothing; only --message sends one. Exits with 1 if something is broken.",
      examples: [
        "parley doctor http://localhost:4000",
        'parley doctor http://localhost:4000 --message "count to 3"',
        "parley doctor http://localhost:4000 --binding JSONRPC --json",
      ],
    })
      .argument(...url)
      .option(
        "--message <text>",
        "a message that takes the agent a second or more: shows whether a proxy holds streams back",
      ),
  ).action(async (at: string, options: DoctorOptions) => {
    // Loaded here, so that other commands start without it.
    const { doctor } = await import("../doctor/index.ts");
    finish(await doctor(io, at, options));
  });
}
