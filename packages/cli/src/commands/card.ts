import { open } from "../connection.ts";
import type { Io } from "../io.ts";
import type { CallOptions } from "../options.ts";
import { showCard } from "../output/card.ts";
import { styleFor } from "../output/style.ts";
import { jsonLine } from "@parley/conform/terminal";

export async function card(io: Io, url: string, options: CallOptions): Promise<number> {
  const client = await open(io, url, options);
  io.stdout.write(
    options.json === true ? `${jsonLine(client.card)}\n` : showCard(client.card, styleFor(io.stdout, io.env)),
  );
  return 0;
}
