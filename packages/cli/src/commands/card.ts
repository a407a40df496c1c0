import { jsonLine } from "@parley/a2a/display";
import { open, type CallOptions } from "../connection.ts";
import type { Io } from "../io.ts";
import { callOptions, url, type Program } from "../options.ts";
import { showCard } from "../output/card.ts";
import { styleFor } from "../output/text.ts";

export function addCard({ io, command, finish }: Program): void {
  callOptions(
    command("card", {
      summary: "Show an agent's card",
      description: "What the agent can do, and how to reach it.",
      examples: ["parley card http://localhost:4000", "parley card http://localhost:4000 --json"],
    }).argument(...url),
  ).action(async (at: string, options: CallOptions) => finish(await card(io, at, options)));
}

async function card(io: Io, at: string, options: CallOptions): Promise<number> {
  const client = await open(io, at, options);
  io.stdout.write(
    options.json === true ? `${jsonLine(client.card)}\n` : showCard(client.card, styleFor(io.stdout, io.env)),
  );
  return 0;
}
