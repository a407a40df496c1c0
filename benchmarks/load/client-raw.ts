import { answerParent } from "../ipc.ts";
import { measured, type ClientLoad, type ClientOutcome } from "./client.ts";

// The floor: fetch, lines, JSON.parse, and no question asked of what they hold.

async function* events({ url, text }: ClientLoad): AsyncGenerator<unknown, void, void> {
  const message = { messageId: crypto.randomUUID(), role: "ROLE_USER", parts: [{ text }] };
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "SendStreamingMessage", params: { message } });
  const response = await fetch(url, { method: "POST", headers: { "content-type": "application/json" }, body });
  if (response.body === null) return;
  let rest = "";
  for await (const piece of response.body.pipeThrough(new TextDecoderStream())) {
    const blocks = (rest + piece).split("\n\n");
    rest = blocks.pop() ?? "";
    for (const block of blocks) yield JSON.parse(block.slice("data: ".length));
  }
}

answerParent({ read: (load: ClientLoad): Promise<ClientOutcome> => measured(events(load)) });
